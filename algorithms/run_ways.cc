#include "algorithms/run_ways.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace rankine {
namespace {

// A plan for a million ranks would have a hundred million.
constexpr std::size_t kMostStates = std::size_t{1} << 14;

// What the rounds to come take at least, when `total` of n have been heard of. What has heard of so
// many more ranks has crossed as many links, two ways at best at once: so much for every rank that
// is missing, and the farther of two messages reaches half of it.
RunCost still_to_come(int n, int total) { return {2 * (n - total), n - total, 0}; }

}  // namespace

RunCost cost_of(int n, const std::vector<RunMessage>& round, Runs theirs) {
  // Half vectors on every link up and down.
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

}  // namespace rankine
