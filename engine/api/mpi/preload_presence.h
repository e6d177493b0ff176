// No exception leaves a function that MPI's programs call: it is an error of MPI's to them.
#pragma once

#include <cxxabi.h>
#include <mpi.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <new>
#include <vector>

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

// Which processes have this library. A communicator with a process that does not have it belongs to
// MPI: that process would wait in MPI for a call that the others make elsewhere. MPI's messages
// cannot ask it, since it receives none of them.
//
// So a process that has the library tells the manager that started the job, before MPI starts, and
// asks the manager after that: MPI's own start is a barrier in between. The manager is PMIx (Open
// MPI's mpirun, srun) or Hydra's PMI (MPICH's mpiexec). All ranks get the same answer. Without
// either manager, all processes are assumed to have the library.

class Presence {
 public:
  // Around MPI_Init; by the thread that calls it.
  void announce();
  void look();
  // Whether all processes of an intracommunicator are of this one's MPI_COMM_WORLD, and have the
  // library: the same on all of them. No call of other ranks; thread-safe after look().
  bool all_have_it(MPI_Comm comm) const;

 private:
  enum class Manager { unknown, pmix, hydra };
  static Manager find_manager();

  bool announced_ = false, everywhere_ = false;
  std::vector<bool> has_it_;  // by rank in MPI_COMM_WORLD, once some have it not
};

Presence& presence();

// Calls MPI's own function that starts it, between announce() and look(). An error of MPI's.
int start_mpi(const std::function<int()>& start);

// Ends a process on another MPI than this library is for, and says so: arguments differ between
// MPIs, so nothing can be passed on.
void check_which_mpi();

}  // namespace rankine::mpi
