#include "algorithms/trivance.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <utility>

namespace rankine {
namespace {

constexpr RunParts kL{true, false, false}, kO{false, true, false}, kR{false, false, true},
    kLO{true, true, false}, kOR{false, true, true}, kLOR{true, true, true};
constexpr std::array<RunParts, 6> kRuns = {kLOR, kLO, kOR, kL, kR, kO};

// What a plan costs, summed over the rounds: first the load of the busiest link and the links that
// the farthest message crosses, together, in half vectors (the form is for small vectors, where the
// way counts as much as the load); then the load; then the messages that need a sum of their own.
struct Cost {
  int load_and_way = 0, load = 0, sums = 0;
  auto operator<=>(const Cost&) const = default;
  Cost operator+(Cost b) const {
    return {load_and_way + b.load_and_way, load + b.load, sums + b.sums};
  }
};

// Half vectors on every link up and down, when everybody sends so far.
Cost cost_of(int n, const std::vector<RunMessage>& round, Runs theirs) {
  int up = 0, down = 0, hops = 0, sums = 0;
  for (const RunMessage& message : round) {
    const int way = ((message.distance % n) + n) % n;
    hops = std::max(hops, std::min(way, n - way));
    if (2 * way == n) {
      up += way;
      down += way;
    } else if (2 * way < n) {
      up += 2 * way;
    } else {
      down += 2 * (n - way);
    }
    if (theirs.length(message.parts) < theirs.total()) ++sums;
  }
  const int load = std::max(up, down);
  return {load + 2 * hops, load, sums};
}

struct Move {
  std::vector<RunMessage> round;
  Runs after;
};

// Lengthens `now` by one message; nothing where the parts are empty or no run.
void lengthen(Move& move, Runs theirs, bool left, RunParts parts) {
  move.round.push_back(left ? message_from_left(theirs, move.after, parts)
                            : message_from_right(theirs, move.after, parts));
  (left ? move.after.left : move.after.right) += theirs.length(parts);
}

// Up to so many ranks all moves are tried in every round; beyond, that takes too long.
constexpr int kAllTried = 81;

bool empty(RunParts parts, Runs runs) { return runs.length(parts) == 0; }

template <class Visit>
void try_pair(Runs runs, bool first_left, RunParts first, bool second_left, RunParts second,
              const Visit& visit) {
  if (empty(first, runs) || empty(second, runs)) return;
  Move move{{}, runs};
  lengthen(move, runs, first_left, first);
  lengthen(move, runs, second_left, second);
  visit(std::move(move));
}

// Rounds before the last one: each side is lengthened by a run that reaches as far as its sender's
// does (no shorter one brings as much as near); or both messages come from one side, with all that
// the senders have. The latter reach every split of the powers of three (a split's ternary digits
// say which side), and from one of those the last round reaches any n.
template <class Visit>
void for_each_move(Runs runs, const Visit& visit) {
  for (const RunParts left : {kLOR, kLO, kL}) {
    for (const RunParts right : {kLOR, kOR, kR}) try_pair(runs, true, left, false, right, visit);
  }
  try_pair(runs, true, kLOR, true, kLOR, visit);
  try_pair(runs, false, kLOR, false, kLOR, visit);
}

// Any runs, and one message where that is enough: what the last round may bring, and with few ranks
// every round.
template <class Visit>
void for_each_any_move(Runs runs, const Visit& visit) {
  for (const RunParts first : kRuns) {
    for (const bool left : {true, false}) {
      if (empty(first, runs)) continue;
      Move move{{}, runs};
      lengthen(move, runs, left, first);
      visit(std::move(move));
    }
    for (const RunParts second : kRuns) {
      try_pair(runs, true, first, false, second, visit);
      try_pair(runs, true, first, true, second, visit);
      try_pair(runs, false, first, false, second, visit);
    }
  }
}

}  // namespace

RunPlan trivance_plan(int n) {
  const int s = ceil_log3(n);
  // Layer k: every state after k rounds from which n can be reached, with the cheapest way there.
  struct Way {
    Cost cost;
    std::pair<int, int> before;
    std::vector<RunMessage> round;
  };
  using Layer = std::map<std::pair<int, int>, Way>;
  std::vector<Layer> layers(static_cast<std::size_t>(s) + 1);
  layers[0][{0, 0}] = {};
  for (int k = 0; k < s; ++k) {
    const bool last = k + 1 == s;
    Layer& next = layers[static_cast<std::size_t>(k) + 1];
    // Every later round can at most triple what one has heard of.
    const int least = last ? n : (n - 1) / power_of_three(s - 1 - k) + 1;
    for (const auto& [state, way] : layers[static_cast<std::size_t>(k)]) {
      const Runs runs{state.first, state.second};
      const auto take = [&, from = state, so_far = way.cost](Move move) {
        const int total = move.after.total();
        if (total < least || total > n) return;
        const Cost cost = so_far + cost_of(n, move.round, runs);
        const std::pair<int, int> to(move.after.left, move.after.right);
        const auto found = next.find(to);
        if (found == next.end() || cost < found->second.cost) {
          next[to] = {cost, from, std::move(move.round)};
        }
      };
      last || n <= kAllTried ? for_each_any_move(runs, take) : for_each_move(runs, take);
    }
  }
  RunPlan plan(static_cast<std::size_t>(s));
  const Layer& end = layers.back();
  // Of equals the one that goes both ways alike.
  const auto rank = [](const auto& entry) {
    return std::pair(entry.second.cost, std::abs(entry.first.first - entry.first.second));
  };
  const auto best = std::min_element(
      end.begin(), end.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  std::pair<int, int> at = best->first;
  for (int k = s; k > 0; --k) {
    const Way& way = layers[static_cast<std::size_t>(k)].at(at);
    plan[static_cast<std::size_t>(k) - 1] = way.round;
    at = way.before;
  }
  return plan;
}

}  // namespace rankine
