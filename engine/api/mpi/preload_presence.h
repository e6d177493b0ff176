// guarded() turns exceptions into MPI errors, because no exception may leave a function that MPI
// programs call. Presence finds out if all processes of a communicator have this library.
#pragma once

#include <cxxabi.h>
#include <mpi.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <new>
#include <vector>

namespace rankine::mpi {

// Prints `why` and calls the communicator's error handler, if `comm` is not MPI_COMM_NULL. Returns
// `error`.
inline int told(MPI_Comm comm, int error, const char* why) noexcept {
  std::fprintf(stderr, "rankine: %s\n", why);
  if (comm != MPI_COMM_NULL) PMPI_Comm_call_errhandler(comm, error);
  return error;
}

// Returns the result of `body`. Cancelling a thread unwinds through it, as through MPI's own
// functions.
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
    return told(comm, MPI_ERR_OTHER, "a function of the program threw no std::exception");
  }
}

// A communicator with a process that lacks this library belongs to MPI: that process would wait in
// MPI for a call that the other processes make elsewhere. MPI messages cannot ask that process,
// because it receives none of them.
//
// So a process with the library tells the manager that started the job before MPI starts, and asks
// the manager after that: MPI's own start is a barrier in between. The manager is PMIx (Open MPI's
// mpirun, srun) or Hydra's PMI (MPICH's mpiexec). All ranks get the same answer. Without either
// manager, all processes are assumed to have the library.

class Presence {
 public:
  // announce() runs before MPI_Init and look() after it, on the thread that calls MPI_Init.
  void announce();
  void look();
  // Returns true if all processes of an intracommunicator belong to this process's MPI_COMM_WORLD
  // and have the library. The result is equal on all of them. Not collective; thread-safe after
  // look().
  bool all_have_it(MPI_Comm comm) const;

 private:
  enum class Manager { unknown, pmix, hydra };
  static Manager find_manager();

  bool announced_ = false, everywhere_ = false;
  std::vector<bool> has_it_;  // by rank in MPI_COMM_WORLD; empty until look()
};

Presence& presence();

// Calls `start`, MPI's own init function, between announce() and look(). Returns an MPI error code.
int start_mpi(const std::function<int()>& start);

// Ends the process with an error if it runs on another MPI than this library is for: argument types
// differ between MPIs, so calls cannot be passed on.
void check_which_mpi();

}  // namespace rankine::mpi
