// run_sums_all_reduce() is an all-reduce on a ring by sums over runs of neighbours, two messages
// per round.
//
// Every rank keeps three partial vectors: the sum over a run of ranks to its left, its own vector,
// and the sum over a run to its right. A message carries the sum of neighbouring ones of these, a
// sum over one run again; the receiver adds it to its run to the left or to the right. All ranks do
// the same work, so a plan is a few numbers for any n. If every message carries all three, the
// whole sum so far is the only vector needed; otherwise (mostly if n is no power of three) whole
// sums would count contributions twice.
#pragma once

#include <compare>
#include <vector>

#include "algorithms/schedule/schedule.h"

namespace rankine {

// Which of the sender's partial vectors a message adds up.
struct RunParts {
  bool left = false, own = false, right = false;
  bool operator==(const RunParts&) const = default;
  bool all() const { return left && own && right; }
  int count() const { return (left ? 1 : 0) + (own ? 1 : 0) + (right ? 1 : 0); }
};

// Rank r's part goes to r + distance, which joins it to its run on the sender's side: from the left
// (distance > 0) or from the right (distance < 0).
struct RunMessage {
  RunParts parts;
  int distance = 0;
};

// The lengths of the runs: l ranks to the left, r to the right, l + r + 1 ranks known in all.
struct Runs {
  int left = 0, right = 0;
  int total() const { return left + right + 1; }
  int length(RunParts parts) const {
    return (parts.left ? left : 0) + (parts.own ? 1 : 0) + (parts.right ? right : 0);
  }
  auto operator<=>(const Runs&) const = default;
};

// The message with those parts that lengthens every rank's run on that side of `now`; `theirs` are
// the senders' runs (before the round; `now` may have been lengthened in it).
RunMessage message_from_left(Runs theirs, Runs now, RunParts parts);
RunMessage message_from_right(Runs theirs, Runs now, RunParts parts);

// One or two messages per round; after the last one every rank has the contributions of n ranks.
using RunPlan = std::vector<std::vector<RunMessage>>;

// The schedule of a plan among n ranks, on one block. If partial sums are kept, each round is a
// turn of kRoundsPerTurn (torus.h): two of local adding, then the messages.
Schedule run_sums_all_reduce(int n, const RunPlan& plan);

}  // namespace rankine
