// What the search for a plan by sums over runs goes through (trivance_plan.cc): the ways from
// nothing heard to states of runs, and what they cost.
#pragma once

#include <compare>
#include <map>
#include <vector>

#include "algorithms/run_moves.h"

namespace rankine {

// What a plan costs, summed over the rounds: first the load of the busiest link and the links that
// the farthest message crosses, together, in half vectors (the form is for small vectors, where the
// way counts as much as the load); then the load; then the messages that need a sum of their own.
struct RunCost {
  int load_and_way = 0, load = 0, sums = 0;
  auto operator<=>(const RunCost&) const = default;
  RunCost operator+(RunCost b) const {
    return {load_and_way + b.load_and_way, load + b.load, sums + b.sums};
  }
};

// Of a round of n ranks in which everybody sends so far.
RunCost cost_of(int n, const std::vector<RunMessage>& round, Runs theirs);

// Whether the last round can begin with those runs.
bool can_end(Runs runs, int n);

// The cheapest way to a state from which n can be reached.
struct RunWay {
  RunCost cost;
  Runs before;                    // the state it comes from
  std::vector<RunMessage> round;  // by which
};
using RunWays = std::map<Runs, RunWay>;  // to states after so many rounds

// Leaves those that a round goes on from: up to some 4,000 ranks all, beyond those that may become
// the cheapest, and `always`.
void keep_cheapest(RunWays& ways, int n, Runs always);

}  // namespace rankine
