// Requests keeps the collective calls that a program has started and not yet completed. The program
// knows each as an MPI generalized request, so handles lie in arrays beside others, and MPI waits
// for them.
//
// Any function that waits in MPI makes started calls progress, as MPI's progress rule demands:
//   - Open MPI calls move_on_in_mpi() from its progress loop (opal_progress), in every function
//     that waits.
//   - Elsewhere (MPICH and MPIs with the standard ABI) only standard functions are used: the
//     library wraps functions that wait and test (preload_waits.cc). During other waits in MPI,
//     such as for a message, and between MPI calls, a helper thread makes progress; it makes no MPI
//     calls and sleeps while no call is started.
// Requests are completed on a thread that is inside MPI.
//
// One object per process; thread-safe.
#pragma once

#include <mpi.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/api/mpi/preload_report.h"
#include "engine/api/request.h"
#include "engine/base/status.h"

namespace rankine::mpi {

struct Prepared;

// The state of a started call until it is complete.
struct StartedCollective {
  Function function{};
  Form form = Form::started;
  std::shared_ptr<Prepared> prepared;  // if prepared, while in flight: MPI has its request
  bool restarts = false;               // keeps `call` and `then` for the next start
  int rank = 0;
  MPI_Comm comm = MPI_COMM_NULL;
  std::size_t bytes = 0;                        // for the report
  std::chrono::steady_clock::time_point began;  // set if a report is wanted
  std::function<void()> then;                   // runs at the end: unpacks received data
  // Set by the caller of start().
  std::atomic<int>* under_way = nullptr;  // count of its communicator's incomplete calls
  bool yields = false;                    // true if ranks share cores
  Request call;
  // Set by Requests.
  Status status;
  MPI_Request handle = MPI_REQUEST_NULL;
  std::atomic<bool> is_complete{false};
};

class Requests {
 public:
  // Call before each start; only the first call has an effect. Error: no way to make progress in
  // this MPI.
  Status begin();
  // Call before MPI is finalized, when no call is in flight.
  void end();

  // Starts a call by `start_call`, and returns MPI's handle of it unless the call is prepared.
  // Errors: the errors of `start_call` (nothing is started then); system if MPI provides no handle.
  Status start(const std::function<Result<Request>()>& start_call,
               std::shared_ptr<StartedCollective> call, MPI_Request* handle);
  // Starts a finished call again if it has `restarts`. Errors: those of Request::start().
  Status restart(std::shared_ptr<StartedCollective> call);
  // Makes calls in flight progress without waiting, and completes the finished ones. Returns their
  // number. Call from threads that may call MPI.
  int move_on() noexcept;
  // As move_on(), for MPI's own loops: yields the core to other ranks if no call is over.
  int move_on_in_mpi() noexcept;
  // Returns an incomplete call among `handles`. nullptr: none, or the MPI is Open MPI, which calls
  // move_on_in_mpi() itself.
  std::shared_ptr<StartedCollective> under_way(int count, const MPI_Request handles[]);

 private:
  using Calls = std::vector<std::shared_ptr<StartedCollective>>;

  // Makes call->handle. Returns an MPI error code.
  int make_handle(const std::shared_ptr<StartedCollective>& call);
  void enter(std::shared_ptr<StartedCollective> call);
  void step() noexcept;
  void help() noexcept;
  void complete(StartedCollective& call);

  std::atomic<int> under_way_{0};  // number of incomplete calls
  std::atomic<bool> yields_{false};
  std::mutex mutex_;    // guards the members below, and Member objects during starts
  Calls calls_, over_;  // calls in order of start; calls to complete
  bool begun_ = false, ends_ = false;
  std::condition_variable changed_;
  std::thread helper_;        // unused with Open MPI
  std::mutex handles_mutex_;  // guards handles_: incomplete calls only
  std::unordered_map<MPI_Request, std::shared_ptr<StartedCollective>> handles_;
};

// One object per process.
Requests& requests();

}  // namespace rankine::mpi
