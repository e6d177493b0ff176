// An MPI program for more ranks than a machine can run as processes. SimGrid's SMPI runs all ranks
// in one process, and each message takes the time of a modelled platform. Every rank joins, plans
// and makes its calls like a rank that is a process, once per named all-reduce algorithm:
//
//   smpirun -np 1024 -no-privatize ... simulated_ranks_smpi.so recursive_doubling ring
//
// All ranks share the globals (-no-privatize), like ranks that are threads.
#include <mpi.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "engine/api/mpi/member.h"

// In SMPI each rank is a process of one thread, but SMPI calls only its first thread the main one.
extern "C" int MPI_Is_thread_main(int* is_main) {
  *is_main = 1;
  return MPI_SUCCESS;
}

namespace rankine::mpi {
namespace {

std::string all_reduce_by(Member& me, const char* algorithm) {
  std::vector<int> in(1000), out(in.size(), -1);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = me.rank() + static_cast<int>(i);
  const Status status = me.all_reduce(std::span<const int>(in), std::span<int>(out), ReduceOp::sum,
                                      {.algorithm = algorithm});
  if (!status.ok()) return status.text();
  const int ranks = me.ranks(), added = ranks * (ranks - 1) / 2;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] != added + static_cast<int>(i) * ranks) return "element " + std::to_string(i);
  }
  return {};
}

// One check of all ranks; passes if `wrong` is empty on every rank. A blocking call, unlike
// mpi_program.h, because SMPI's started calls send a message between each pair.
bool check(const char* name, const std::string& wrong) {
  int rank = 0, bad = wrong.empty() ? 0 : 1, all = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (bad != 0) std::printf("%s, rank %d: %s\n", name, rank, wrong.c_str());
  return all == 0;
}

int run_all(int argc, char** argv) {
  auto joined = join(MPI_COMM_WORLD, {.timeout = std::chrono::hours(1)});
  int passed = 0, failed = 0;
  ++(check("join", joined.ok() ? "" : joined.status().text()) ? passed : failed);
  for (int i = 1; i < argc && failed == 0; ++i) {
    ++(check(argv[i], all_reduce_by(**joined, argv[i])) ? passed : failed);
  }
  if (joined.ok() && (*joined)->rank() == 0) {
    std::printf("%d passed, %d failed\n", passed, failed);
  }
  return failed;
}

}  // namespace
}  // namespace rankine::mpi

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  const int result = rankine::mpi::run_all(argc, argv);
  MPI_Finalize();
  return result;
}
