// Which processes have this library. A communicator with a process that does not have it belongs to
// MPI: that process would wait in MPI for a call that the others make elsewhere. MPI's messages
// cannot ask it, since it receives none of them.
//
// So a process that has the library tells the manager that started the job, before MPI starts, and
// asks the manager after that: MPI's own start is a barrier in between. The manager is PMIx (Open
// MPI's mpirun, srun) or Hydra's PMI (MPICH's mpiexec). All ranks get the same answer. Without
// either manager, all processes are assumed to have the library.
#pragma once

#include <mpi.h>

#include <functional>
#include <vector>

namespace rankine::mpi {

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
