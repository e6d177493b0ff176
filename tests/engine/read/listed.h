// Schedules as plain lists of transfers, for tests that write schedules out or change them, and
// networks on which such schedules take whole seconds.
#pragma once

#include <utility>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/network/fabric.h"

namespace rankine {

using TransferList = std::vector<std::vector<Transfer>>;  // by round

inline TransferList list_of(const Schedule& schedule) {
  TransferList out(static_cast<std::size_t>(schedule.rounds));
  for (int k = 0; k < schedule.rounds; ++k) {
    for_each_transfer(schedule, k,
                      [&](const Transfer& t) { out[static_cast<std::size_t>(k)].push_back(t); });
  }
  return out;
}

// Keeps ranks and blocks as given, in range or not.
inline Schedule listed(int ranks, int blocks, TransferList rounds, int planes = 1) {
  const int count = static_cast<int>(rounds.size());
  return {ranks,
          blocks,
          count,
          [rounds = std::move(rounds)](int k, Send send) {
            for (const Transfer& t : rounds[static_cast<std::size_t>(k)]) send.exactly(t);
          },
          {},
          planes};
}

inline Transfer transfer(RankSet from, RankSet to, BlockSet what, TransferKind kind) {
  return {std::move(from), std::move(to), what, what, kind};
}

inline constexpr Sync kBoth[] = {Sync::dataflow, Sync::rounds};

// Alpha is 1 s, a block of one byte takes 1 s on a private link, and ports are unlimited.
inline Fabric seconds_fabric(const Wiring& wiring, Rational alpha = 1, Rational alpha_hop = 0) {
  Fabric fabric;
  fabric.ports = 64;
  fabric.link = {alpha, 1};
  fabric.wiring = wiring;
  fabric.group = wiring.group;
  if (wiring.group > 0) fabric.between = fabric.link;
  fabric.alpha_hop = alpha_hop;
  return fabric;
}

inline const Wiring kRing{.kind = WiringKind::ring};
inline Wiring torus(std::vector<int> dims) {
  return {.kind = WiringKind::torus, .dims = std::move(dims)};
}

inline CollectiveSpec any_goal(const Schedule& schedule) {
  return {.collective = Collective::all_reduce, .ranks = schedule.ranks, .blocks = schedule.blocks};
}

}  // namespace rankine
