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
#include "numa/placement.h"
#include "numa/rank_report.h"

namespace rankine {

struct TeamOptions {
  int ranks = 2;
  PlacementPolicy placement{};  // compact; never more than asked for: refusals are reported
  std::chrono::milliseconds timeout{30'000};
  std::optional<WaitPolicy> wait{};
  bool tuned = true;         // as CommunicatorOptions::tuned
  bool lock_memory = false;  // keep the engine's own memory from being swapped out
};

class Team {
 public:
  // Errors: ranks or placement out of range, threads or memory that the system refuses.
  static Result<std::unique_ptr<Team>> create(const TeamOptions& options);
  ~Team();  // waits for a run in progress, then joins the threads
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int ranks() const;
  Communicator& communicator();

  // Calls f(member) on every rank's thread at once and waits for all. One run at a time.
  // Where f throws on a rank, all others' calls end with remote_error, and run() returns the text;
  // the exception itself is kept in thrown(). A rank whose f returns while others wait for it gives
  // them rank_lost. After an error the team is finished: its runs return the same error.
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
  explicit Team(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rankine
