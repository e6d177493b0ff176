// The profile of a schedule: what it takes to know its time for every size and every network of one
// wiring, from one pass over its transfers.
//
// By rounds (Sync::rounds of simulate.h) and with blocks of exactly M / B bytes, a message takes
//
//   alpha + hops * alpha_hop + beta * M * load
//
// where load is what its busiest link carries in the round, in units of M: Eq. (1) of Trivance. The
// time of a round is that of its slowest message, and for whatever alpha, alpha_hop, beta and M
// that is one whose (hops, load) no other message reaches in both. Only those are kept. Rounds of
// local work have none and take no time.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/network/wiring.h"

namespace rankine {

// A message that is the slowest of its round on some network.
struct SlowMessage {
  int hops = 0;
  std::int64_t load = 0;  // of its busiest link, in units of M / Profile::per_m
  bool operator==(const SlowMessage&) const = default;
};

struct Profile {
  int ranks = 1;
  std::int64_t per_m = 1;  // units that M has: loads and bytes sent are whole numbers of them
  // Of every round with messages: hops rise and loads fall. Never empty.
  std::vector<std::vector<SlowMessage>> rounds;
  std::vector<std::int64_t> sent;  // by rank, in the same units
  int most_messages = 0;  // that one rank sends, or receives, in a round: ports that are needed

  int round_count() const { return static_cast<int>(rounds.size()); }
  std::int64_t most_sent() const;
  // Sum over the rounds of the load of the busiest link.
  std::int64_t total_load() const;

  // Seconds. As many ports as `most_messages` are assumed.
  double time(double alpha, double alpha_hop, double beta, double bytes) const;
  // With a fabric's alpha, alpha_hop and beta; its wiring is the caller's business.
  double time(const Fabric& fabric, double bytes) const;
};

// `wiring` has all messages on one kind of link: no leaves. Rounds are worked on by all cores.
// Errors: those of Routes::make(), two_level or fat_tree wiring, a multicast or ALU transfer. What
// a schedule throws comes through.
Result<Profile> profile(const Schedule& schedule, const Goal& goal, const Wiring& wiring);

}  // namespace rankine
