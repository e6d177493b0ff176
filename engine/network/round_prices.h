// What messages cost on a network where those of one round share links: Pricing and Congestion
// together. One definition for the simulator, the clocks on threads and the choice of segments; on
// a network whose messages share nothing it is Pricing::message().
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/network/congestion.h"
#include "engine/network/fabric.h"
#include "engine/network/ticks.h"

namespace rankine {

// For one thread. `fabric` (as wired_for() gives it) and `pricing` (of the same fabric) must
// outlive it.
class RoundPrices {
 public:
  // `one_for_all`: the rounds are one rank's part, turned round the rings of the fabric where these
  // share links. Errors: those of Routes::make().
  static Result<RoundPrices> make(const Fabric& fabric, const Pricing& pricing, int ranks,
                                  bool one_for_all = false);

  // To be called before anything else about round k of a schedule: collects its messages. Nothing
  // to do where they share no links. `crosses` is told how many links each message crosses, before
  // they are gone through; what it throws leaves the round half begun, for nobody to ask about.
  void begin_round(const Schedule& schedule, int k,
                   const std::function<void(int links)>& crosses = {});

  // Of the round begun, from a rank to another one: alpha and hops, whatever the size; and all of
  // it, of a message that belongs to the round. Nothing where that is more than Pricing::kMost.
  Ticks latency(Rank from, Rank to) const;
  std::optional<Ticks> message(Rank from, Rank to, std::int64_t weight) const;
  // What any transfer of it costs, of so much weight: a local one what it adds up.
  std::optional<Ticks> price(const Transfer& t, std::int64_t weight) const;
  // What of that a port pays once a round, of all its messages the greatest: the latency, where the
  // switch permutes and the transfer is a message. Else 0.
  Ticks once(const Transfer& t) const;

  bool shares_links() const { return fabric_->wiring.shares_links(); }
  // Of the round begun; empty where messages share no links.
  const RoundTraffic& traffic() const { return congestion_.traffic(); }

 private:
  RoundPrices(const Fabric& fabric, const Pricing& pricing, Routes routes, bool one_for_all);

  const Fabric* fabric_;
  const Pricing* pricing_;
  Congestion congestion_;
  // Of shared links that are odd: seconds per byte by link, in ticks as Pricing has them; 0: as
  // others. Empty where there is none.
  std::vector<Ticks> odd_beta_;
};

// What is wrong where message() gives nothing.
Status beyond_128_bits();

}  // namespace rankine
