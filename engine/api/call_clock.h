// What puts the calls of one communicator on a modelled network (network.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "engine/api/call_network.h"
#include "engine/network/predict.h"
#include "engine/network/ticks.h"
#include "engine/network/timed_schedule.h"
#include "engine/network/virtual_clock.h"

namespace rankine {

class CallClock {
 public:
  // Errors: those of wired_for(), which name the network's member; more ranks than there may be.
  static Result<std::unique_ptr<CallClock>> make(const CallNetwork& network, int ranks) {
    if (ranks > CallNetwork::kMostRanks) {
      return invalid_argument("ranks is " + std::to_string(ranks) +
                              "; allowed on a modelled network are 1 to " +
                              std::to_string(CallNetwork::kMostRanks));
    }
    const auto fabric = wired_for(network.fabric, ranks);
    if (!fabric.ok()) return of_network(fabric.status());
    // Of whole bytes the unit is the fabric's alone.
    const auto pricing =
        Pricing::make(*fabric, {.collective = Collective::broadcast, .ranks = ranks}, 0, false);
    if (!pricing.ok()) return of_network(pricing.status());
    return std::unique_ptr<CallClock>(
        new CallClock(*fabric, network.sync, ranks, pricing->ticks_per_second()));
  }

  // What a call's messages cost: of M bytes, or of blocks of so many.
  Result<Pricing> price(const Goal& goal, std::uint64_t m) const {
    return Pricing::make(fabric_, goal, m, false);
  }
  Result<Pricing> price(std::span<const std::uint64_t> blocks) const {
    return Pricing::of_blocks(fabric_, blocks);
  }
  // The algorithm that is the cheapest here, and its parameters: what calls get that name none.
  Result<Candidate> cheapest(Collective collective, const Params& params, std::uint64_t m,
                             const std::function<Status()>& may_go_on) const {
    const auto all = predict(collective, params, m, fabric_, {.sync = sync_}, may_go_on);
    if (!all.ok()) return all.status();
    for (const Candidate& one : *all) {
      if (one.ok() && one.algorithm->other_bits.empty()) return one;
    }
    return invalid_argument("network: no algorithm of " + std::string(name_of(collective)) +
                            " can run on " + fabric_.name);
  }
  const Fabric& fabric() const { return fabric_; }
  VirtualClock& clock() { return clock_; }
  Ticks ticks_per_second() const { return ticks_per_second_; }

 private:
  CallClock(Fabric fabric, Sync sync, int ranks, Ticks ticks_per_second)
      : fabric_(std::move(fabric)),
        sync_(sync),
        ticks_per_second_(ticks_per_second),
        clock_(ranks, sync) {}
  static Status of_network(const Status& status) {
    return {status.code(), "network: " + status.text()};
  }

  const Fabric fabric_;
  const Sync sync_;
  const Ticks ticks_per_second_;
  VirtualClock clock_;
};

}  // namespace rankine
