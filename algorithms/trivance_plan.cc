#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include "algorithms/run_ways.h"
#include "algorithms/trivance.h"

namespace rankine {
namespace {

// Up to so many ranks any moves are tried in every round; beyond, only in the last one.
constexpr int kAllTried = 81;

}  // namespace

RunPlan trivance_plan(int n) {
  const int s = ceil_log3(n);
  // From this split of a power of three a last round ends, whatever is found else.
  const int thirds = power_of_three(s - 1), left = std::max(0, (n - thirds - 1) % thirds);
  std::vector<RunWays> ways = {{{Runs{}, RunWay{}}}};
  for (int k = 0; k < s; ++k) {
    RunWays next;
    // Every later round can at most triple what one has heard of.
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
    RunWay& way = ways[k + 1].at(at);
    plan[k] = std::move(way.round);
    at = way.before;
  }
  return plan;
}

}  // namespace rankine
