// All-gathers on a ring whose rounds have one distance, up and down.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "algorithms/schedule/everyone.h"

namespace rankine {

struct TwoWayRound {
  int distance;
  IndexList up, down;  // the blocks that rank 0 sends so far
};

inline Schedule two_way_all_gather(int n, std::vector<TwoWayRound> rounds) {
  const int s = static_cast<int>(rounds.size());
  const auto part = [rounds = std::move(rounds)](int k, Send send) {
    const auto& [distance, up, down] = at(rounds, k);
    if (!up.empty()) send(0, distance, BlockSet{up}, copy);
    if (!down.empty()) send(0, -distance, BlockSet{down}, copy);
  };
  return everyone({n, n, s, part}, Moves::with_rank);
}

// Of the busiest links in all rounds, on a torus of so many such dimensions that take turns: blocks
// of the line times what a rank has along the other dimensions.
inline double load_of(const std::vector<TwoWayRound>& rounds, int dimensions) {
  double load = 0, had = 1;
  for (const auto& [distance, up, down] : rounds) {
    const double has = had + up.size() + down.size();
    for (int before = 0; before < dimensions; ++before) {
      load += distance * std::max(up.size(), down.size()) * std::pow(has, before) *
              std::pow(had, dimensions - 1 - before);
    }
    had = has;
  }
  return load;
}

}  // namespace rankine
