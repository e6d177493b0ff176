// All-gathers on a ring with one distance per round, up and down. Then the search for plans of the
// latency form, and the crosses.

#include "algorithms/trivance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/run_sums.h"
#include "algorithms/schedule/rotation_symmetric.h"

namespace rankine {

struct TwoWayRound {
  int distance;
  IndexList up, down;  // the blocks that rank 0 sends that far
};

inline Schedule two_way_all_gather(int n, std::vector<TwoWayRound> rounds) {
  const int s = static_cast<int>(rounds.size());
  const auto part = [rounds = std::move(rounds)](int k, Send send) {
    const auto& [distance, up, down] = at(rounds, k);
    if (!up.empty()) send(0, distance, BlockSet{up}, copy);
    if (!down.empty()) send(0, -distance, BlockSet{down}, copy);
  };
  return rotation_symmetric({n, n, s, part}, Moves::with_rank);
}

// The load of the busiest links in all rounds, on a torus of `dimensions` such lines that take
// turns: blocks of the line times the blocks that a rank has along the other dimensions.
inline double load_of(const std::vector<TwoWayRound>& rounds, int dimensions) {
  double load = 0, had = 1;
  for (const auto& [distance, up, down] : rounds) {
    const double has = had + up.size() + down.size();
    for (int before = 0; before < dimensions; ++before) {
      load += distance * std::max(up.size(), down.size()) * std::pow(has, before) *
              std::pow(had, dimensions - 1 - before);
    }
    had = has;
  }
  return load;
}

namespace {

std::vector<TwoWayRound> by_thirds(int n) {
  const int h = n / 2;
  std::vector<bool> got(static_cast<std::size_t>(2 * h) + 1, false);  // by way + h
  const auto has = [&](int way) { return way >= -h && way <= h && at(got, way + h); };
  at(got, h) = true;
  std::vector<TwoWayRound> rounds;
  for (const int d : trivance_thirds(n)) {
    TwoWayRound round{d, {}, {}};
    std::vector<int> reached;
    for (int way = h; way >= -h; --way) {  // ways of the blocks -h to h at rank 0
      const int on = way + d;
      if (!has(way) || has(on) || on > h || (on <= 0 && has(on + d))) continue;
      reached.push_back(on);
      round.up.append({-way, 1, 1});
    }
    std::reverse(reached.begin(), reached.end());
    for (const int on : reached) {  // mirrored
      if (2 * on != n) round.down.append({on - d, 1, 1});
      at(got, h + on) = at(got, h - on) = true;
    }
    rounds.push_back(std::move(round));
  }
  return rounds;
}

std::vector<TwoWayRound> by_powers(int n) {
  const int s = ceil_log3(n);
  int up = 0, down = 0;  // distances so far; the remaining distances have smaller digits
  std::vector<TwoWayRound> rounds;
  for (int d = power_of_three(s - 1); static_cast<int>(rounds.size()) < s; d /= 3) {
    const int digit = (n - 1) / d % 3;
    const int more_up = digit == 2 || (digit == 1 && up <= down) ? 1 : 0;
    const int more_down = digit - more_up;
    // Blocks lie at the multiples of 3d from -down to up of their way.
    const int there = (up + down) / (3 * d);
    TwoWayRound round{d, {}, {}};
    // The outermost blocks go on if their way has one d more.
    if (there + more_up > 0) {
      round.up.append({-(up + 3 * d * (more_up - 1)), there + more_up, 3 * d});
    }
    if (there + more_down > 0) round.down.append({-up, there + more_down, 3 * d});
    up += more_up * d;
    down += more_down * d;
    rounds.push_back(std::move(round));
  }
  return rounds;
}

}  // namespace

std::vector<int> trivance_thirds(int n) {
  std::vector<int> out;
  for (int h = n / 2; h > 0; h -= out.back()) out.push_back((2 * h + 1) / 3);
  return out;
}

Schedule trivance_line(int n, int dimensions) {
  std::vector<TwoWayRound> rounds = by_thirds(n), powers = by_powers(n);
  if (load_of(powers, dimensions) < load_of(rounds, dimensions)) rounds = std::move(powers);
  return two_way_all_gather(n, std::move(rounds));
}

Schedule trivance_powers_line(int n) { return two_way_all_gather(n, by_powers(n)); }

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

namespace {

using Vector = std::vector<int>;
using Cross = std::vector<Vector>;  // D vectors

// D crosses. In three dimensions x + 2y + 4z meets every residue modulo 7 on cross 0 and is 0 on
// the others; x + 4y + 2z meets every residue on cross 1 and is 0 on cross 2; x meets every residue
// on cross 2.
std::vector<Cross> crosses(std::size_t dimensions) {
  if (dimensions == 2) return {{{1, 0}, {0, 1}}, {{2, 1}, {-1, 2}}};
  if (dimensions == 3) {
    return {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
            {{2, -1, 0}, {0, 2, -1}, {-1, 0, 2}},
            {{1, 1, 1}, {2, 2, 2}, {3, 3, 3}}};
  }
  throw std::logic_error("dimensions is " + std::to_string(dimensions) +
                         "; allowed for crosses are 2 and 3");
}

}  // namespace

std::vector<std::vector<Rank>> cross_ends(const std::vector<int>& dims) {
  const Torus torus(dims);
  const int p = 2 * torus.dimensions() + 1;
  std::vector<std::vector<Rank>> ends;
  for (int step = 1; step < dims.front(); step *= p) {
    for (const Cross& cross : crosses(dims.size())) {
      ends.emplace_back();
      for (const Vector& v : cross) {
        for (const int way : {step, -step}) {
          Rank end = 0;
          for (int d = 0; d < torus.dimensions(); ++d) {
            end += wrapped(way * at(v, d), torus.size(d)) * torus.stride(d);
          }
          ends.back().push_back(end);
        }
      }
    }
  }
  return ends;
}

Schedule trivance_cross_all_gather(const std::vector<int>& dims) {
  if (dims.size() == 1) return trivance_powers_line(dims.front());
  const int n = Torus(dims).ranks();
  auto ends = cross_ends(dims);
  std::reverse(ends.begin(), ends.end());
  Rotation rotation(dims, n, Moves::with_rank);
  std::vector<BlockSet> has;  // by round: rank 0's blocks, of equally many ranks to either side
  std::vector<Rank> reached = {0};
  for (const std::vector<Rank>& round : ends) {
    std::sort(reached.begin(), reached.end());
    has.emplace_back();
    for (const Rank r : reached) has.back().list.append(r);
    std::vector<Rank> more = reached;
    for (const Rank end : round) {
      for (const Rank r : reached) more.push_back(rotation.rotated(r, end));
    }
    reached = std::move(more);
  }
  const int s = static_cast<int>(ends.size());
  const auto part = [ends = std::move(ends), has = std::move(has)](int k, Send send) {
    for (const Rank end : at(ends, k)) send(0, end, at(has, k), copy);
  };
  return rotation_symmetric({n, n, s, part}, std::move(rotation));
}

}  // namespace rankine
