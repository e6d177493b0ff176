// Team owns N threads that play ranks: pinned, with memory near them, asleep between runs.
//
//   auto team = rankine::Team::create({.ranks = 4});
//   Status s = (*team)->run([](rankine::Member& me) { ... me.all_reduce(...).throw_if_error(); });
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/api/communicator.h"
#include "engine/run/process.h"
#include "numa/placement.h"

namespace rankine {

struct TeamOptions {
  int ranks = 2;
  PlacementPolicy placement{};  // compact; the engine pins no more than this and reports refusals
  std::chrono::milliseconds timeout{30'000};
  std::optional<WaitPolicy> wait{};
  // As CommunicatorOptions::algorithms.
  std::vector<std::shared_ptr<const Algorithm>> algorithms{};
  bool tuned = true;             // as CommunicatorOptions::tuned
  std::optional<Costs> costs{};  // as CommunicatorOptions::costs
  bool lock_memory = false;      // keeps the engine's memory, payloads too, from being swapped out
  std::shared_ptr<const CallNetwork> network{};  // as CommunicatorOptions::network
  // compact and scatter: prefer cores on which this process has no other team.
  bool share_out_cores = true;
  std::optional<Order> order{};  // as CommunicatorOptions::order
  // As CommunicatorOptions::progress_core; this team's ranks also avoid it if they can.
  std::optional<int> progress_core{};
  int ports = 0;              // as CommunicatorOptions::ports
  bool record_times = false;  // as CommunicatorOptions::record_times
};

class Team {
 public:
  // Errors: ranks or placement out of range; threads or memory that the system refuses.
  static Result<std::unique_ptr<Team>> create(const TeamOptions& options);
  // Waits for a run in progress, then joins the threads. If a thread of the team runs the
  // destructor (a rank's function destroys the team, or calls exit() while the team is a static
  // object), joining is impossible: the destructor aborts the communicator, gives the other ranks
  // up to one second to finish, and abandons threads and memory. In a forked child it touches no
  // thread and no memory.
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int ranks() const;
  Communicator& communicator();

  // Calls f(member) on every rank's thread at once and waits for all of them. One run at a time. If
  // f throws on a rank, the calls of all other ranks end with remote_error and run() returns the
  // exception's text; thrown() keeps the exception. If f returns on a rank while others wait for
  // that rank, they get rank_lost. They also get rank_lost if the rank's thread ends inside f, by
  // pthread_exit() or a deferred pthread_cancel(); a cancellation can take effect only inside f.
  // After an error the team is finished: later runs return the same error. If f forks, the child
  // ends when f returns in it. Errors: the communicator's; invalid_argument if run() is called
  // during another run, also by a thread of the team.
  Status run(const std::function<void(Member&)>& f);
  std::exception_ptr thrown() const;

  // Memory for data that all ranks read, such as data staged once for all ranks: interleaved over
  // the nodes of the ranks, so that no single node serves all reads. The arena maps nothing before
  // the first allocate(). One caller at a time may use the arena; any thread may use the memory.
  Arena& staging();

  // The placement of each rank, and each pin, binding or lock that the system has refused so far.
  std::vector<RankReport> report() const;

 private:
  struct State;
  explicit Team(ProcessOwned<State> state);
  ProcessOwned<State> state_;
};

}  // namespace rankine
