// All-gathers on a ring with one distance per round, up and down, and the crosses.

#include "algorithms/trivance.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/schedule/rotation_symmetric.h"

namespace rankine {

struct TwoWayRound {
  int distance;
  IndexList up, down;     // the blocks that rank 0 sends that far
  bool half_way = false;  // the first of `up` goes half way round, and `down` could bring it
  double had = 1;         // a rank's blocks before the round
};
using TwoWayRounds = std::vector<TwoWayRound>;

inline Schedule two_way_all_gather(int n, TwoWayRounds rounds) {
  const int s = static_cast<int>(rounds.size());
  const auto part = [rounds = std::move(rounds)](int k, Send send) {
    const auto& [distance, up, down, half_way, had] = at(rounds, k);
    if (!up.empty()) send(0, distance, BlockSet{up}, copy);
    if (!down.empty()) send(0, -distance, BlockSet{down}, copy);
  };
  return rotation_symmetric({n, n, s, part}, Moves::with_rank);
}

// The load of the busiest links in all rounds of a torus of such lines (by size), in the turns of
// torus.h: blocks of the line times the blocks that a rank has along the other dimensions.
inline double load_of(const std::vector<int>& dims, const std::map<int, TwoWayRounds>& lines) {
  const int dimensions = static_cast<int>(dims.size());
  const auto rounds_of = [&](int d) -> const TwoWayRounds& { return lines.at(at(dims, d)); };
  int most = 0;
  for (const auto& [n, rounds] : lines) most = std::max(most, static_cast<int>(rounds.size()));
  // Rounds of a line before its turn k; shorter lines begin later.
  const auto done = [&](int d, int k) { return k + static_cast<int>(rounds_of(d).size()) - most; };
  const auto held = [&](int d, int k) {
    const TwoWayRounds& rounds = rounds_of(d);
    const int before = std::max(0, done(d, k));
    return before < static_cast<int>(rounds.size()) ? at(rounds, before).had : at(dims, d);
  };
  double load = 0;
  for (int turn = 0; turn < most * dimensions; ++turn) {
    const int k = turn / dimensions, nth = turn % dimensions;
    double busiest = 0;
    for (int first = 0; first < dimensions; ++first) {  // the collectives side by side
      const int d = (first - nth + dimensions) % dimensions, n = at(dims, d);
      if (done(d, k) < 0) continue;
      double others = 1;
      for (int e = 0; e < dimensions; ++e) {
        const bool earlier = (first - e + dimensions) % dimensions < nth;
        if (e != d) others *= held(e, earlier ? k + 1 : k);
      }
      const auto& [distance, up, down, half_way, had] = at(rounds_of(d), done(d, k));
      const double moved = half_way ? std::floor(others / 2) : 0;
      const double above = up.size() * others - moved, below = down.size() * others + moved;
      // A message half way round goes both ways.
      const double one = 2 * distance == n ? (above + below) / 2 : std::max(above, below);
      busiest = std::max(busiest, std::min(distance, n - distance) * one);
    }
    load += busiest;
  }
  return load;
}

namespace {

TwoWayRounds by_thirds(int n) {
  const int h = n / 2;
  std::vector<bool> got(static_cast<std::size_t>(2 * h) + 1, false);  // by way + h
  const auto has = [&](int way) { return way >= -h && way <= h && at(got, way + h); };
  at(got, h) = true;
  TwoWayRounds rounds;
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
    // In a ring of two, one wire leads to the same rank as the other.
    round.half_way = n > 2 && !reached.empty() && 2 * reached.back() == n;
    for (const int on : reached) {  // mirrored
      if (2 * on != n) round.down.append({on - d, 1, 1});
      at(got, h + on) = at(got, h - on) = true;
    }
    rounds.push_back(std::move(round));
  }
  return rounds;
}

TwoWayRounds by_powers(int n) {
  const int s = ceil_log3(n);
  int up = 0, down = 0;  // distances so far; the remaining distances have smaller digits
  TwoWayRounds rounds;
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

namespace {

// The rounds of the lines of each size, by the rules with the least load; on a ring by thirds.
std::map<int, TwoWayRounds> lightest_lines(const std::vector<int>& dims) {
  const std::set<int> sizes(dims.begin(), dims.end());
  std::map<int, TwoWayRounds> lines, lightest;
  double least = std::numeric_limits<double>::infinity();
  for (unsigned powers = 0; powers < (dims.size() == 1 ? 1U : 1U << sizes.size()); ++powers) {
    unsigned bit = 1;
    for (const int n : sizes) {
      lines[n] = (powers & bit) != 0 ? by_powers(n) : by_thirds(n);
      double had = 1;
      for (TwoWayRound& round : lines[n]) {
        round.had = had;
        had += round.up.size() + round.down.size();
      }
      bit <<= 1;
    }
    const double load = load_of(dims, lines);
    if (load >= least) continue;
    least = load;
    lightest = lines;
  }
  return lightest;
}

// The all-gather on a torus with, of the blocks that go half way round a line, the second half
// brought by the neighbour above. `shared`: by dimension, true for lines with such blocks.
Schedule shared_half_way(const Schedule& gathered, const std::vector<bool>& shared) {
  const RotationSymmetric& all = *symmetry_of(gathered);
  const auto round = [part = all.part(), rotation = all.rotation(), shared,
                      torus = Torus(all.rotation().dims())](int k, Send send) {
    std::vector<Transfer> stated;  // rank 0's up, then down
    for_each_transfer(part, k, [&](const Transfer& t) { stated.push_back(t); });
    if (stated.empty()) return;
    const Rank to = stated.front().to.front();
    const auto line = rotation.dimension_between(0, to);
    const int d = static_cast<int>(line), size = torus.size(d);
    IndexList kept, half_way;
    stated.front().what.list.for_each([&](Block b) {
      const int way = wrapped(torus.coordinate(to, d) - torus.coordinate(b, d), size);
      (shared[line] && 2 * way == size ? half_way : kept).append(b);
    });
    const std::vector<int> tied = half_way.to_vector();
    IndexList above;
    for (std::size_t i = 0; i < tied.size(); ++i) {
      (2 * i < tied.size() ? kept : above).append(tied[i]);
    }
    if (!above.empty()) {
      stated.front().what = stated.front().where = {kept};
      const Rank sender = rotation.rotated(to, to);
      const Rank back = rotation.back(sender);
      const Rank down = rotation.rotated(to, back);
      if (stated.size() < 2) stated.push_back({0, down, {}, {}, copy});
      stated[1].what.list.append(rotation.rotated(above, back));
      stated[1].where = stated[1].what;
    }
    for (Transfer& t : stated) send.exactly(std::move(t));
  };
  const int n = gathered.ranks;
  return rotation_symmetric({n, gathered.blocks, gathered.rounds, round}, all.rotation());
}

}  // namespace

Schedule trivance_line(int n, int dimensions) {
  const std::vector<int> dims(static_cast<std::size_t>(dimensions), n);
  return two_way_all_gather(n, lightest_lines(dims).at(n));
}

Schedule trivance_all_gather(const std::vector<int>& dims) {
  const auto lines = lightest_lines(dims);
  std::vector<bool> shared;
  for (const int n : dims) shared.push_back(n > 1 && lines.at(n).back().half_way);
  return torus_all_gather(dims, {[&](int n) { return two_way_all_gather(n, lines.at(n)); }},
                          Turns::rotating,
                          [&](const Schedule& part) { return shared_half_way(part, shared); });
}

Schedule trivance_powers_line(int n) { return two_way_all_gather(n, by_powers(n)); }

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
