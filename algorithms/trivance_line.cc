#include <algorithm>
#include <utility>

#include "algorithms/trivance.h"
#include "algorithms/two_way_rounds.h"

namespace rankine {
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
    for (int way = h; way >= -h; --way) {  // of the blocks -h to h, which rank 0 has at those ways
      const int on = way + d;
      if (!has(way) || has(on) || on > h || (on <= 0 && has(on + d))) continue;
      reached.push_back(on);
      round.up.append({-way, 1, 1});
    }
    std::reverse(reached.begin(), reached.end());
    for (const int on : reached) {  // in a mirror
      if (2 * on != n) round.down.append({on - d, 1, 1});
      at(got, h + on) = at(got, h - on) = true;
    }
    rounds.push_back(std::move(round));
  }
  return rounds;
}

std::vector<TwoWayRound> by_powers(int n) {
  const int s = ceil_log3(n);
  int up = 0, down = 0;  // so far, and what is left has smaller digits
  std::vector<TwoWayRound> rounds;
  for (int d = power_of_three(s - 1); static_cast<int>(rounds.size()) < s; d /= 3) {
    const int digit = (n - 1) / d % 3;
    const int more_up = digit == 2 || (digit == 1 && up <= down) ? 1 : 0;
    const int more_down = digit - more_up;
    // Blocks lie at the multiples of 3d from -down to up of their way.
    const int there = (up + down) / (3 * d);
    TwoWayRound round{d, {}, {}};
    // The outermost ones go on where their way has one d more.
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

}  // namespace rankine
