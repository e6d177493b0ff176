#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <utility>

#include "algorithms/run_moves.h"
#include "algorithms/trivance.h"

namespace rankine {
namespace {

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
  int up = 0, down = 0, farthest = 0, sums = 0;
  for (const RunMessage& message : round) {
    const int way = wrapped(message.distance, n), hops = std::min(way, n - way);
    farthest = std::max(farthest, hops);
    // What goes half way round goes both ways, a half of it each.
    up += 2 * way == n ? hops : 2 * way < n ? 2 * hops : 0;
    down += 2 * way == n ? hops : 2 * way > n ? 2 * hops : 0;
    sums += theirs.length(message.parts) < theirs.total() ? 1 : 0;
  }
  const int load = std::max(up, down);
  return {load + 2 * farthest, load, sums};
}

// Up to so many ranks any moves are tried in every round; beyond, only in the last one.
constexpr int kAllTried = 81;

// What the rounds to come take at least, when `total` of n have been heard of. What has heard of so
// many more ranks has crossed as many links, two ways at best at once: so much for every rank that
// is missing, and the farther of two messages reaches half of it.
Cost still_to_come(int n, int total) { return {2 * (n - total), n - total, 0}; }

// Whether the last round can begin with those runs.
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

// The cheapest way to a state from which n can be reached.
struct Way {
  Cost cost;
  Runs before;                    // the state it comes from
  std::vector<RunMessage> round;  // by which
};
using Ways = std::map<Runs, Way>;  // to states after so many rounds

// How many states a round goes on from: up to some 4,000 ranks all that there are, beyond those
// that may become the cheapest. A plan for a million would have a hundred million.
constexpr std::size_t kMostStates = std::size_t{1} << 14;

void keep_cheapest(Ways& ways, int n, Runs always) {
  if (ways.size() <= kMostStates) return;
  const auto least_of = [n](const Ways::value_type& way) {
    return std::pair(way.second.cost + still_to_come(n, way.first.total()), way.first);
  };
  std::vector<std::pair<Cost, Runs>> least;
  for (const auto& way : ways) least.push_back(least_of(way));
  const auto last = least.begin() + static_cast<std::ptrdiff_t>(kMostStates - 1);
  std::nth_element(least.begin(), last, least.end());
  std::erase_if(ways,
                [&](const auto& way) { return *last < least_of(way) && way.first != always; });
}

}  // namespace

RunPlan trivance_plan(int n) {
  const int s = ceil_log3(n);
  // From this split of a power of three a last round ends, whatever is found else.
  const int thirds = power_of_three(s - 1), left = std::max(0, (n - thirds - 1) % thirds);
  std::vector<Ways> ways = {{{Runs{}, Way{}}}};
  for (int k = 0; k < s; ++k) {
    Ways next;
    // Every later round can at most triple what one has heard of.
    const int least = (n - 1) / power_of_three(s - 1 - k) + 1;
    for (const auto& [runs, way] : ways.back()) {
      const auto take = [&, &runs = runs, &way = way](RunMove&& move) {
        if (move.after.total() < least || move.after.total() > n) return;
        if (k + 2 == s && !can_end(move.after, n)) return;
        const Cost cost = way.cost + cost_of(n, move.round, runs);
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
  // Of equals the one that goes both ways alike.
  const auto rank = [](const auto& way) {
    return std::pair(way.second.cost, std::abs(way.first.left - way.first.right));
  };
  Runs at =
      std::min_element(ways.back().begin(), ways.back().end(), [&](const auto& a, const auto& b) {
        return rank(a) < rank(b);
      })->first;
  RunPlan plan(static_cast<std::size_t>(s));
  for (std::size_t k = plan.size(); k-- > 0;) {
    Way& way = ways[k + 1].at(at);
    plan[k] = std::move(way.round);
    at = way.before;
  }
  return plan;
}

}  // namespace rankine
