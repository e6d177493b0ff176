// A schedule on a network, as clocks on threads need it: what each of its transfers costs, and whom
// it touches. Made once for all ranks, and immutable.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/network/ticks.h"

namespace rankine {

struct TimedTransfer {
  Transfer transfer;
  Ticks cost = 0, once = 0;     // once: what of it a port pays once a round (RoundPrices)
  std::vector<Rank> touched{};  // the first of them, a receiver, coordinates
};

class TimedSchedule {
 public:
  // `fabric` as wired_for() gives it, `pricing` of the same fabric. Errors: a transfer that the
  // fabric cannot do, and what else simulate() refuses.
  // `may_go_on` is asked before each round, and ends it by an error; empty: nobody does.
  static Result<std::shared_ptr<const TimedSchedule>> make(
      const Schedule& schedule, const Goal& goal, const Fabric& fabric, const Pricing& pricing,
      const std::function<Status()>& may_go_on = {});

  const Schedule& schedule() const { return schedule_; }
  const Goal& goal() const { return goal_; }
  int ports() const { return ports_; }
  Ticks ticks_per_second() const { return ticks_per_second_; }
  Ticks least_cost() const { return least_cost_; }  // of a message; 0 where there is none

  // In the order stated: all of a round, and those that touch a rank.
  std::span<const TimedTransfer> of_round(int k) const {
    return transfers_[static_cast<std::size_t>(k)];
  }
  std::span<const TimedTransfer* const> of_rank(Rank r, int k) const {
    return touching_[static_cast<std::size_t>(r) * transfers_.size() + static_cast<std::size_t>(k)];
  }

  std::size_t bytes() const;  // of memory, about

 private:
  TimedSchedule(const Schedule& schedule, const Goal& goal, int ports, Ticks ticks_per_second)
      : schedule_(schedule), goal_(goal), ports_(ports), ticks_per_second_(ticks_per_second) {}

  const Schedule schedule_;
  const Goal goal_;
  const int ports_;
  const Ticks ticks_per_second_;
  Ticks least_cost_ = 0;
  std::vector<std::vector<TimedTransfer>> transfers_;        // by round
  std::vector<std::vector<const TimedTransfer*>> touching_;  // by rank and round
};

}  // namespace rankine
