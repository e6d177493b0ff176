#include <algorithm>
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

struct Way {
  Cost cost;
  RunPlan plan;
};

}  // namespace

RunPlan trivance_plan(int n) {
  const int s = ceil_log3(n);
  std::map<Runs, Way> ways = {
      {Runs{}, Way{}}};  // the cheapest to every state from which n can be reached
  for (int k = 0; k < s; ++k) {
    std::map<Runs, Way> next;
    // Every later round can at most triple what one has heard of.
    const int least = (n - 1) / power_of_three(s - 1 - k) + 1;
    for (const auto& [runs, way] : ways) {
      const auto take = [&, &runs = runs, &way = way](RunMove&& move) {
        if (move.after.total() < least || move.after.total() > n) return;
        const Cost cost = way.cost + cost_of(n, move.round, runs);
        const auto [there, first] = next.try_emplace(move.after);
        if (!first && !(cost < there->second.cost)) return;
        there->second = {cost, way.plan};
        there->second.plan.push_back(std::move(move.round));
      };
      for_each_run_move(runs, k + 1 == s || n <= kAllTried, take);
    }
    ways = std::move(next);
  }
  // Of equals the one that goes both ways alike.
  const auto rank = [](const auto& way) {
    return std::pair(way.second.cost, std::abs(way.first.left - way.first.right));
  };
  return std::min_element(ways.begin(), ways.end(),
                          [&](const auto& a, const auto& b) { return rank(a) < rank(b); })
      ->second.plan;
}

}  // namespace rankine
