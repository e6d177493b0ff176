// The order in which the dimensions of a torus take turns, and which turns are idle
// (torus_turns.h).
#pragma once

#include <algorithm>
#include <vector>

#include "algorithms/torus_turns.h"

namespace rankine {

// Whose turn it is, and which of its rounds; kIdle where it has none left.
struct Turn {
  int dimension = 0;
  int round = 0;
};
inline constexpr int kIdle = -1;

// All turns of a collective that begins with that dimension, in the order of a reduce-scatter;
// `rounds`: how many each dimension has.
inline std::vector<Turn> turns_from(int first, const std::vector<int>& rounds, Turns turns) {
  const int dimensions = static_cast<int>(rounds.size());
  std::vector<int> falling = rounds;
  std::sort(falling.rbegin(), falling.rend());
  const int most = falling.front(), next = dimensions > 1 ? falling[1] : 0;
  std::vector<Turn> out;
  const auto add = [&](int i, int round) {
    const int d = (first + i) % dimensions, of_line = at(rounds, d);
    if (round < std::max(next, of_line)) out.push_back({d, round < of_line ? round : kIdle});
  };
  if (turns == Turns::rotating) {
    for (int round = 0; round < most; ++round) {
      for (int i = 0; i < dimensions; ++i) add(i, round);
    }
  } else {
    for (int i = 0; i < dimensions; ++i) {
      for (int round = 0; round < most; ++round) add(i, round);
    }
  }
  return out;
}

// The same of the all-gather whose dual that is: from the last turn to the first, and so is each
// dimension's round.
inline std::vector<Turn> gathering_turns_from(int first, const std::vector<int>& rounds,
                                              Turns turns) {
  std::vector<Turn> out = turns_from(first, rounds, turns);
  std::reverse(out.begin(), out.end());
  for (Turn& turn : out) {
    if (turn.round != kIdle) turn.round = at(rounds, turn.dimension) - 1 - turn.round;
  }
  return out;
}

}  // namespace rankine
