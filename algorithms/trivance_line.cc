#include "algorithms/trivance.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "algorithms/schedule/everyone.h"

namespace rankine {
namespace {

// A round of the all-gather: the blocks that rank 0 sends so far up and so far down.
struct Exchange {
  int distance;
  IndexList up, down;
};

std::vector<Exchange> by_thirds(int n) {
  const int h = n / 2;
  std::vector<bool> got(static_cast<std::size_t>(2 * h) + 1, false);  // by way + h
  const auto has = [&](int way) {
    return way >= -h && way <= h && got[static_cast<std::size_t>(way + h)];
  };
  got[static_cast<std::size_t>(h)] = true;
  std::vector<Exchange> rounds;
  for (const int d : trivance_thirds(n)) {
    Exchange round{d, {}, {}};
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
      got[static_cast<std::size_t>(h + on)] = got[static_cast<std::size_t>(h - on)] = true;
    }
    rounds.push_back(std::move(round));
  }
  return rounds;
}

std::vector<Exchange> by_powers(int n) {
  const int s = ceil_log3(n);
  int up = 0, down = 0;  // so far, and what is left has smaller digits
  std::vector<Exchange> rounds;
  for (int d = power_of_three(s - 1); static_cast<int>(rounds.size()) < s; d /= 3) {
    const int digit = (n - 1) / d % 3;
    const int more_up = digit == 2 || (digit == 1 && up <= down) ? 1 : 0;
    const int more_down = digit - more_up;
    // Blocks lie at the multiples of 3d from -down to up of their way.
    const int there = (up + down) / (3 * d);
    Exchange round{d, {}, {}};
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

// Of the busiest links in all rounds, on a torus of so many such dimensions that take turns: blocks
// of the line times what a rank has along the other dimensions.
double load_of(const std::vector<Exchange>& rounds, int dimensions) {
  double load = 0, had = 1;
  for (const Exchange& round : rounds) {
    const int up = round.up.size(), down = round.down.size();
    const double has = had + up + down;
    for (int before = 0; before < dimensions; ++before) {
      load += round.distance * std::max(up, down) * std::pow(has, before) *
              std::pow(had, dimensions - 1 - before);
    }
    had = has;
  }
  return load;
}

Schedule gather_by(int n, std::vector<Exchange> rounds) {
  const int s = static_cast<int>(rounds.size());
  const auto part = [rounds = std::move(rounds)](int k, Send send) {
    const Exchange& round = rounds[static_cast<std::size_t>(k)];
    if (!round.up.empty()) send(0, round.distance, BlockSet{round.up, 0}, copy);
    if (!round.down.empty()) send(0, -round.distance, BlockSet{round.down, 0}, copy);
  };
  return everyone({n, n, s, part}, Moves::with_rank);
}

}  // namespace

std::vector<int> trivance_thirds(int n) {
  std::vector<int> out;
  for (int h = n / 2; h > 0; h -= out.back()) out.push_back((2 * h + 1) / 3);
  return out;
}

Schedule trivance_line(int n, int dimensions) {
  std::vector<Exchange> rounds = by_thirds(n), powers = by_powers(n);
  if (load_of(powers, dimensions) < load_of(rounds, dimensions)) rounds = std::move(powers);
  return gather_by(n, std::move(rounds));
}

Schedule trivance_powers_line(int n) { return gather_by(n, by_powers(n)); }

}  // namespace rankine
