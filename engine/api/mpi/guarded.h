// No exception leaves a function that MPI's programs call: it is an error of MPI's to them.
#pragma once

#include <cxxabi.h>
#include <mpi.h>

#include <cstdio>
#include <exception>
#include <new>

namespace rankine::mpi {

// By the communicator's handler of errors, or, of MPI_COMM_NULL, only as a result.
inline int told(MPI_Comm comm, int error, const char* why) noexcept {
  std::fprintf(stderr, "rankine: %s\n", why);
  if (comm != MPI_COMM_NULL) PMPI_Comm_call_errhandler(comm, error);
  return error;
}

// What `body` returns. A thread that is cancelled is unwound through it, as through MPI's own.
template <class Body>
int guarded(MPI_Comm comm, const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return told(comm, MPI_ERR_NO_MEM, "there is no memory");
  } catch (const std::exception& e) {
    return told(comm, MPI_ERR_OTHER, e.what());
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {
    return told(comm, MPI_ERR_OTHER, "a function of the program threw what is no std::exception");
  }
}

}  // namespace rankine::mpi
