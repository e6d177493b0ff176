// What puts the calls of one communicator on a modelled network (network.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/schedule/lower.h"
#include "engine/api/network.h"
#include "engine/network/network_clock.h"
#include "engine/network/predict.h"
#include "engine/network/ticks.h"
#include "engine/network/timed_schedule.h"
#include "engine/run/wait_policy.h"

namespace rankine {

// What ranks that are processes share of a clock, in memory that outlives it; none of threads.
struct SharedClock {
  std::byte* channels = nullptr;                   // as NetworkClock has it
  std::atomic<std::int64_t>* origin_ns = nullptr;  // as NetworkSeats, where none are given
};

class CallClock {
 public:
  // Errors: those of wired_for() and of seats that are too few, which name the network's member.
  // A wall clock that is asked to find its dilation takes a few milliseconds for that.
  static Result<std::unique_ptr<CallClock>> make(const CallNetwork& network, int ranks,
                                                 const WaitPolicy& policy,
                                                 const SharedClock& shared = {});

  // What a call's messages cost: of M bytes, or of blocks of so many.
  Result<Pricing> price(const Goal& goal, std::uint64_t m) const {
    return Pricing::make(fabric_, goal, m, false);
  }
  Result<Pricing> price(std::span<const std::uint64_t> blocks) const {
    return Pricing::of_blocks(fabric_, blocks);
  }
  // All that can run, the cheapest one first; without those that are never chosen.
  Result<std::vector<Candidate>> candidates(Collective collective, const Params& params,
                                            std::uint64_t m,
                                            const std::function<Status()>& may_go_on) const;
  // What a call gets: the algorithm that it asks for, or where that is nullptr the cheapest one
  // here; with what `params` leave open as the network wants it.
  Result<Candidate> cheapest(Collective collective, const Algorithm* asked, const Params& params,
                             std::uint64_t m, const std::function<Status()>& may_go_on) const;

  const Fabric& fabric() const { return fabric_; }
  // What an algorithm's schedule is here.
  Schedule schedule(const Algorithm& algorithm, const Params& params) const {
    Schedule made = algorithm.make(params);
    return lower_ ? lower(std::move(made), fabric_.abilities()) : made;
  }
  NetworkClock& clock() { return clock_; }
  double seconds(Ticks ticks) const {
    return nearest_double(ticks, clock_.options().ticks_per_second);
  }
  // The network of some of the ranks, in that order, at the same seats.
  CallNetwork among(const std::vector<Rank>& ranks) const;
  NetworkReport report() const;
  // Of a wall clock, as a sentence; else nothing.
  std::string how_well_kept() const;

 private:
  CallClock(Fabric fabric, bool lower, const NetworkClockOptions& options,
            std::shared_ptr<NetworkSeats> seats, const std::vector<int>& places,
            std::byte* channels);

  const Fabric fabric_;
  const bool lower_;
  NetworkClock clock_;
};

}  // namespace rankine
