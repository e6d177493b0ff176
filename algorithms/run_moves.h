// The rounds that a plan by sums over runs (run_sums.h) can have.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "algorithms/run_sums.h"

namespace rankine {

// One or two messages, and the runs that everybody has after them.
struct RunMove {
  std::vector<RunMessage> round;
  Runs after;
};

// What a message can carry, which is a run.
inline constexpr std::array<RunParts, 6> kRuns = {{{true, true, true},
                                                   {true, true, false},
                                                   {false, true, true},
                                                   {true, false, false},
                                                   {false, false, true},
                                                   {false, true, false}}};

// visit(RunMove&&) for what a round can make of `runs`. `any`: all there is. Else each side is
// lengthened by a run that reaches as far as its sender's does (no shorter one brings as much as
// near); or both messages come from one side, with all that the senders have. The latter reach
// every split of the powers of three (a split's ternary digits say which side), and from one of
// those the last round reaches any n.
template <class Visit>
void for_each_run_move(Runs runs, bool any, const Visit& visit) {
  const auto lengthened = [runs](RunMove move, bool left, RunParts parts) {
    move.round.push_back(left ? message_from_left(runs, move.after, parts)
                              : message_from_right(runs, move.after, parts));
    (left ? move.after.left : move.after.right) += runs.length(parts);
    return move;
  };
  const RunMove none{{}, runs};
  for (const RunParts first : kRuns) {
    if (runs.length(first) == 0) continue;
    for (const bool left : {true, false}) {
      if (any) visit(lengthened(none, left, first));
    }
    for (const RunParts second : kRuns) {
      if (runs.length(second) == 0) continue;
      if (any || (first.left && second.right)) {
        visit(lengthened(lengthened(none, true, first), false, second));
      }
      for (const bool left : {true, false}) {
        if (!any && !(first.all() && second.all())) continue;
        visit(lengthened(lengthened(none, left, first), left, second));
      }
    }
  }
}

}  // namespace rankine
