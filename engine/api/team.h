// Ranks as the engine's own threads: pinned, with memory near them, asleep between runs.
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
  PlacementPolicy placement{};  // compact; never more than asked for: refusals are reported
  std::chrono::milliseconds timeout{30'000};
  std::optional<WaitPolicy> wait{};
  bool tuned = true;             // as CommunicatorOptions::tuned
  std::optional<Costs> costs{};  // as CommunicatorOptions::costs
  bool lock_memory = false;      // keep the engine's memory, payloads too, from being swapped out
  std::shared_ptr<const CallNetwork> network{};  // as CommunicatorOptions::network
  // compact and scatter: cores on which this process has no other team are taken first.
  bool share_out_cores = true;
  std::optional<Order> order{};  // as CommunicatorOptions::order
  // As CommunicatorOptions::progress_core; this team's ranks keep off it where they can, too.
  std::optional<int> progress_core{};
  int ports = 0;  // as CommunicatorOptions::ports
};

class Team {
 public:
  // Errors: ranks or placement out of range, threads or memory that the system refuses.
  static Result<std::unique_ptr<Team>> create(const TeamOptions& options);
  // Waits for a run in progress, then joins the threads. On a thread of its own, where a rank's
  // function destroys the team or calls exit() while the team is a static object, it cannot: there
  // it aborts the communicator, gives the other ranks up to a second to come to their ends, and
  // leaves threads and memory alone. In a forked child it leaves everything alone.
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int ranks() const;
  Communicator& communicator();

  // Calls f(member) on every rank's thread at once and waits for all. One run at a time.
  // Where f throws on a rank, all others' calls end with remote_error, and run() returns the text;
  // the exception itself is kept in thrown(). A rank whose f returns while others wait for it gives
  // them rank_lost, and so does one whose thread ends in f, by pthread_exit() or a (deferred)
  // pthread_cancel(), which only f can be hit by. After an error the team is finished: its runs
  // return the same error. A child that f has forked comes to its end where f returns there.
  // Errors: the communicator's; invalid_argument in another run, as on a rank's own thread.
  Status run(const std::function<void(Member&)>& f);
  std::exception_ptr thrown() const;

  // For data that all ranks read, such as what is staged once for everybody: interleaved over the
  // nodes that ranks are on, so that no node's memory serves them alone. Nothing is mapped before
  // the first allocate(). One caller at a time; its memory is anybody's.
  Arena& staging();

  // Where each rank went and what could not be enforced so far.
  std::vector<RankReport> report() const;

 private:
  struct State;
  explicit Team(ProcessOwned<State> state);
  ProcessOwned<State> state_;
};

}  // namespace rankine
