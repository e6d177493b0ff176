// Schedules as plain lists of transfers, for tests that write schedules out or change them.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "algorithms/schedule/schedule.h"

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

}  // namespace rankine
