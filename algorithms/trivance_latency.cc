// The search for plans of Trivance's latency form.
#include "algorithms/trivance.h"

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "algorithms/run_sums.h"

namespace rankine {

// The rounds that a plan by sums over runs (run_sums.h) can have.

// One or two messages, and every rank's runs after them.
struct RunMove {
  std::vector<RunMessage> round;
  Runs after;
};

// The contents that a message can carry: one run.
inline constexpr std::array<RunParts, 6> kRuns = {{{true, true, true},
                                                   {true, true, false},
                                                   {false, true, true},
                                                   {true, false, false},
                                                   {false, false, true},
                                                   {false, true, false}}};

// visit(RunMove&&) for the possible rounds from `runs`. `any`: all of them. Otherwise each side is
// lengthened by a run that reaches as far as its sender's does (a shorter one never brings more
// from as near); or both messages come from one side, with all partial vectors of the senders. The
// latter reach every split of the powers of three (a split's ternary digits give the side), and
// from one of those the last round reaches any n.
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

// The search for a plan by sums over runs: the ways from the start to states of runs, and their
// costs.

// The cost of a plan, summed over the rounds: first the load of the busiest link plus the links
// that the farthest message crosses, in half vectors (the form is for small vectors, for which the
// way counts as much as the load); then the load; then the messages that need a separate sum.
struct RunCost {
  int load_and_way = 0, load = 0, sums = 0;
  auto operator<=>(const RunCost&) const = default;
  RunCost operator+(RunCost b) const {
    return {load_and_way + b.load_and_way, load + b.load, sums + b.sums};
  }
};

// The cost of a round of n ranks in which every rank sends these messages.
RunCost cost_of(int n, const std::vector<RunMessage>& round, Runs theirs);

// True if the last round can begin with those runs.
bool can_end(Runs runs, int n);

// The cheapest way to a state from which n can be reached.
struct RunWay {
  RunCost cost;
  Runs before;                    // the state it comes from
  std::vector<RunMessage> round;  // the round that leads here
};
using RunWays = std::map<Runs, RunWay>;  // to states after a number of rounds

// Keeps the states that the next round starts from: up to some 4,000 ranks all of them, beyond that
// those that may become the cheapest, and `always`.
void keep_cheapest(RunWays& ways, int n, Runs always);

namespace {

// A plan for a million ranks would have a hundred million states.
constexpr std::size_t kMostStates = std::size_t{1} << 14;

// A lower bound of the cost of the remaining rounds, if `total` of n ranks are known. Learning of
// one more rank crosses one link, at best two ways at once: this is the load for each missing rank,
// and the farther of two messages reaches half of them.
RunCost still_to_come(int n, int total) { return {2 * (n - total), n - total, 0}; }

}  // namespace

RunCost cost_of(int n, const std::vector<RunMessage>& round, Runs theirs) {
  // Half vectors on every link up and down.
  int up = 0, down = 0, farthest = 0, sums = 0;
  for (const RunMessage& message : round) {
    const int way = wrapped(message.distance, n), hops = std::min(way, n - way);
    farthest = std::max(farthest, hops);
    // A message that goes half way round goes both ways, one half of it each.
    up += 2 * way == n ? hops : 2 * way < n ? 2 * hops : 0;
    down += 2 * way == n ? hops : 2 * way > n ? 2 * hops : 0;
    sums += theirs.length(message.parts) < theirs.total() ? 1 : 0;
  }
  const int load = std::max(up, down);
  return {load + 2 * farthest, load, sums};
}

bool can_end(Runs runs, int n) {
  const int missing = n - runs.total();
  for (const RunParts first : kRuns) {
    const int length = runs.length(first);
    if (length == 0) continue;
    if (length == missing) return true;
    for (const RunParts second : kRuns) {
      if (runs.length(second) > 0 && length + runs.length(second) == missing) return true;
    }
  }
  return false;
}

void keep_cheapest(RunWays& ways, int n, Runs always) {
  if (ways.size() <= kMostStates) return;
  const auto least_of = [n](const RunWays::value_type& way) {
    return std::pair(way.second.cost + still_to_come(n, way.first.total()), way.first);
  };
  std::vector<std::pair<RunCost, Runs>> least;
  for (const auto& way : ways) least.push_back(least_of(way));
  const auto last = least.begin() + static_cast<std::ptrdiff_t>(kMostStates - 1);
  std::nth_element(least.begin(), last, least.end());
  std::erase_if(ways,
                [&](const auto& way) { return *last < least_of(way) && way.first != always; });
}

namespace {

// Up to this number of ranks all moves are tried in every round; beyond, only in the last one.
constexpr int kAllTried = 81;

}  // namespace

RunPlan trivance_plan(int n) {
  const int s = ceil_log3(n);
  // From this split of a power of three a last round always completes the plan.
  const int thirds = power_of_three(s - 1), left = std::max(0, (n - thirds - 1) % thirds);
  std::vector<RunWays> ways = {{{Runs{}, RunWay{}}}};
  for (int k = 0; k < s; ++k) {
    RunWays next;
    // Every later round can at most triple the number of ranks known.
    const int least = (n - 1) / power_of_three(s - 1 - k) + 1;
    for (const auto& [runs, way] : ways.back()) {
      const auto take = [&, &runs = runs, &way = way](RunMove&& move) {
        if (move.after.total() < least || move.after.total() > n) return;
        if (k + 2 == s && !can_end(move.after, n)) return;
        const RunCost cost = way.cost + cost_of(n, move.round, runs);
        const auto [there, first] = next.try_emplace(move.after);
        if (!first && !(cost < there->second.cost)) return;
        there->second = {cost, runs, std::move(move.round)};
      };
      for_each_run_move(runs, k + 1 == s || n <= kAllTried, take);
    }
    const int all = power_of_three(k + 1);
    keep_cheapest(next, n, {left % all, all - 1 - left % all});
    ways.push_back(std::move(next));
  }
  // Among equals, the plan with the most equal sides.
  const auto rank = [](const auto& way) {
    return std::pair(way.second.cost, std::abs(way.first.left - way.first.right));
  };
  Runs at =
      std::min_element(ways.back().begin(), ways.back().end(), [&](const auto& a, const auto& b) {
        return rank(a) < rank(b);
      })->first;
  RunPlan plan(static_cast<std::size_t>(s));
  for (std::size_t k = plan.size(); k-- > 0;) {
    RunWay& way = ways[k + 1].at(at);
    plan[k] = std::move(way.round);
    at = way.before;
  }
  return plan;
}

}  // namespace rankine
