// What goes over the wire, as MPI is told: counts what this process sends by persistent requests,
// in the place of MPI's own functions (the profiling interface). For one source file of a program.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <map>

namespace rankine::mpi {

struct WireCount {
  std::uint64_t messages = 0, bytes = 0;
};
inline WireCount wire_count;
// Of requests that send, what they send.
inline std::map<MPI_Request, std::uint64_t> persistent_sends;

}  // namespace rankine::mpi

extern "C" int MPI_Send_init(const void* buffer, int count, MPI_Datatype type, int to, int tag,
                             MPI_Comm comm, MPI_Request* request) {
  const int code = PMPI_Send_init(buffer, count, type, to, tag, comm, request);
  int bytes = 0;
  PMPI_Type_size(type, &bytes);
  rankine::mpi::persistent_sends[*request] =
      static_cast<std::uint64_t>(bytes) * static_cast<std::uint64_t>(count);
  return code;
}

extern "C" int MPI_Request_free(MPI_Request* request) {
  rankine::mpi::persistent_sends.erase(*request);
  return PMPI_Request_free(request);
}

extern "C" int MPI_Start(MPI_Request* request) {
  const auto found = rankine::mpi::persistent_sends.find(*request);
  if (found != rankine::mpi::persistent_sends.end()) {
    ++rankine::mpi::wire_count.messages;
    rankine::mpi::wire_count.bytes += found->second;
  }
  return PMPI_Start(request);
}
