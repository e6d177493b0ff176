// Collective calls that a program has started, each of which it knows as a request of MPI's: a
// generalized one. So handles lie in arrays beside others, and it is MPI that waits for them.
//
// What moves them on is whatever waits in MPI, as its rules of progress ask:
//   - Open MPI calls us from its own loop (opal_progress), in every function of its that waits.
//   - Everywhere else, MPICH and what has the standard ABI, MPI is asked for nothing that no
//     standard has: what waits and tests is wrapped (preload_waits.cc). In other functions of MPI's
//     that wait, such as the reception of a message, and between its calls, a thread of ours moves
//     them on, which makes no call of MPI's. It sleeps where nothing is started.
// What is over becomes complete, as MPI sees it, on a thread that is inside MPI.
//
// One per process; thread-safe.
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

// What is to be known of a started call until it is complete.
struct StartedCollective {
  Function function{};
  Form form = Form::started;
  std::shared_ptr<Prepared> prepared;  // with that form, while under way: MPI has its request
  bool restarts = false;               // keeps `call` and `then` for the next time
  int rank = 0;
  MPI_Comm comm = MPI_COMM_NULL;
  std::size_t bytes = 0;                        // as reported
  std::chrono::steady_clock::time_point began;  // where that is reported
  std::function<void()> then;                   // once it is over: what is received to its places
  // Theirs who start it.
  std::atomic<int>* under_way = nullptr;  // of its communicator: not complete yet
  bool yields = false;                    // ranks share cores
  Request call;
  // Set here.
  Status status;
  MPI_Request handle = MPI_REQUEST_NULL;
  std::atomic<bool> is_complete{false};
};

class Requests {
 public:
  // Before the first start, again and again. Error: nothing would move calls on in this MPI.
  Status begin();
  // Before MPI ends, when nothing is under way.
  void end();

  // Starts a call by `start_call`, and gives MPI's handle of it, unless it was prepared. Errors:
  // those of `start_call`, then nothing is started; system where MPI has no handle to give.
  Status start(const std::function<Result<Request>()>& start_call,
               std::shared_ptr<StartedCollective> call, MPI_Request* handle);
  // Starts once more what restarts and is over. Errors: those of Request::start().
  Status restart(std::shared_ptr<StartedCollective> call);
  // Moves on what is under way, without waiting, and completes what is over: how many. For threads
  // that may call MPI.
  int move_on() noexcept;
  // The same inside MPI's own loops: gives way to other ranks where nothing is over.
  int move_on_in_mpi() noexcept;
  // One of these handles' that is not complete; nullptr: none, or Open MPI, which calls us.
  std::shared_ptr<StartedCollective> under_way(int count, const MPI_Request handles[]);

 private:
  using Calls = std::vector<std::shared_ptr<StartedCollective>>;

  // Sets MPI's handle of it. An error of MPI's.
  int make_handle(const std::shared_ptr<StartedCollective>& call);
  void enter(std::shared_ptr<StartedCollective> call);
  void step() noexcept;
  void help() noexcept;
  void complete(StartedCollective& call);

  std::atomic<int> under_way_{0};  // not complete yet
  std::atomic<bool> yields_{false};
  std::mutex mutex_;  // guards what follows, and the communicators' members while calls are started
  Calls calls_, over_;  // in the order in which they were started; to be completed
  bool begun_ = false, ends_ = false;
  std::condition_variable changed_;
  std::thread helper_;        // none in Open MPI
  std::mutex handles_mutex_;  // guards what follows: those that are not complete
  std::unordered_map<MPI_Request, std::shared_ptr<StartedCollective>> handles_;
};

// This process's.
Requests& requests();

}  // namespace rankine::mpi
