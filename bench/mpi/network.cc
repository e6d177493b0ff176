// Measures the network of its MPI processes, within nodes and between them, and prints it as a
// network file. third_party/mpi --tune builds and starts it.
#include <mpi.h>

#include <cstdio>

#include "engine/api/mpi/member.h"
#include "engine/network/network_members.h"

namespace rankine::mpi {
namespace {

int run() {
  auto joined = join(MPI_COMM_WORLD);
  const auto fabric = joined.ok() ? measure_network(**joined) : Result<Fabric>(joined.status());
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const auto file = fabric.ok() ? write_network(*fabric) : Result<std::string>(fabric.status());
  if (rank != 0) return file.ok() ? 0 : 1;
  if (!file.ok()) {
    std::fprintf(stderr, "network: %s\n", file.status().text().c_str());
    return 1;
  }
  std::printf("%s", file->c_str());
  return 0;
}

}  // namespace
}  // namespace rankine::mpi

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int result = rankine::mpi::run();
  MPI_Finalize();
  return result;
}
