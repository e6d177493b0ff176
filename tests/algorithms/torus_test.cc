#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/bruck.h"
#include "algorithms/catalogue.h"
#include "algorithms/exchange.h"
#include "algorithms/torus.h"
#include "algorithms/torus_rings.h"
#include "algorithms/trivance.h"
#include "tests/algorithms/reference.h"

namespace rankine {
namespace {

using Dims = std::vector<int>;

const std::vector<Dims> kShapes = {{1},    {2},       {5},       {2, 2},    {2, 3},
                                   {3, 2}, {3, 5},    {5, 3},    {4, 4},    {6, 5},
                                   {5, 6}, {2, 2, 2}, {3, 3, 3}, {4, 3, 5}, {2, 3, 2, 2}};

int product(const Dims& dims) {
  int out = 1;
  for (const int size : dims) out *= size;
  return out;
}

// True if two ranks are neighbours; computes coordinates without the engine.
bool neighbours(const Dims& dims, Rank a, Rank b) {
  int differing = 0;
  for (auto size = dims.rbegin(); size != dims.rend(); ++size) {
    const int gap = ((a % *size - b % *size) + *size) % *size;
    if (gap != 0) ++differing;
    if (gap != 0 && gap != 1 && gap != *size - 1) return false;
    a /= *size;
    b /= *size;
  }
  return differing == 1;
}

TEST(Torus, TheLastDimensionVariesFastest) {
  const Torus torus({2, 3, 4});
  EXPECT_EQ(torus.ranks(), 24);
  EXPECT_EQ(torus.coordinate(0 * 12 + 2 * 4 + 3, 1), 2);
  for (Rank r : ranks(24)) {
    EXPECT_EQ(r,
              (torus.coordinate(r, 0) * 3 + torus.coordinate(r, 1)) * 4 + torus.coordinate(r, 2));
  }
}

TEST(Torus, EveryRankHasOneCoordinate) {
  const Torus torus({2, 3, 4});
  for (int d = 0; d < 3; ++d) {
    std::vector<int> seen(24, 0);
    for (int x = 0; x < torus.size(d); ++x) {
      torus.for_each_at(d, x, [&](Rank r) {
        EXPECT_EQ(torus.coordinate(r, d), x);
        ++seen[static_cast<std::size_t>(r)];
      });
    }
    EXPECT_EQ(seen, std::vector<int>(24, 1));
  }
}

TEST(Torus, RefusesSizesThatDoNotFit) {
  EXPECT_EQ(dims_refusal({4, 4}, 16), std::nullopt);
  EXPECT_EQ(dims_refusal({1}, 1), std::nullopt);
  EXPECT_TRUE(dims_refusal({4, 4}, 15).value_or("").starts_with("dims is 4x4"));
  EXPECT_TRUE(dims_refusal({65536, 65536, 65536}, 15)
                  .value_or("")
                  .starts_with("dims is 65536x65536x65536"));
  EXPECT_TRUE(dims_refusal({5, 1}, 5).value_or("").starts_with("dims is 5x1"));
  EXPECT_TRUE(dims_refusal({-5, -1}, 5).value_or("").starts_with("dims is -5x-1"));
}

TEST(BalancedDims, AreNearestToEachOther) {
  EXPECT_EQ(balanced_dims(12, 1), (Dims{12}));
  EXPECT_EQ(balanced_dims(12, 2), (Dims{4, 3}));
  EXPECT_EQ(balanced_dims(12, 3), (Dims{3, 2, 2}));
  EXPECT_EQ(balanced_dims(64, 3), (Dims{4, 4, 4}));
  EXPECT_EQ(balanced_dims(72, 3), (Dims{6, 4, 3}));
  EXPECT_EQ(balanced_dims(13, 2), Dims{});
  EXPECT_EQ(balanced_dims(12, 4), Dims{});
  EXPECT_EQ(balanced_dims(1, 2), Dims{});
}

TEST(HamiltonianCycle, VisitsAllAndOnlyNeighbours) {
  for (int a = 2; a <= 9; ++a) {
    for (int b = 2; b <= 9; ++b) {
      for (const Dims& dims : {Dims{a, b}, Dims{a, b, 3}, Dims{a, 2, b}}) {
        const std::vector<Rank> cycle = hamiltonian_cycle(dims);
        const std::size_t n = cycle.size();
        ASSERT_EQ(static_cast<int>(n), product(dims));
        EXPECT_EQ(std::set<Rank>(cycle.begin(), cycle.end()).size(), n) << dims_text(dims);
        EXPECT_EQ(cycle.front(), 0);
        for (std::size_t i = 0; i < n; ++i) {
          EXPECT_TRUE(neighbours(dims, cycle[i], cycle[(i + 1) % n]))
              << dims_text(dims) << ": " << cycle[i] << " to " << cycle[(i + 1) % n];
        }
      }
    }
  }
}

// Together the cycles use every edge once, so rings along them load all links equally.
void expect_every_edge_once(const Dims& dims) {
  SCOPED_TRACE(dims_text(dims));
  const auto cycles = disjoint_cycles(dims);
  ASSERT_EQ(cycles.size(), dims.size());
  std::set<std::pair<Rank, Rank>> edges;
  for (const std::vector<Rank>& cycle : cycles) {
    ASSERT_EQ(static_cast<int>(cycle.size()), product(dims));
    EXPECT_EQ(std::set<Rank>(cycle.begin(), cycle.end()).size(), cycle.size());
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const Rank x = cycle[i], y = cycle[(i + 1) % cycle.size()];
      EXPECT_TRUE(neighbours(dims, x, y));
      EXPECT_TRUE(edges.insert({std::min(x, y), std::max(x, y)}).second);
    }
  }
  EXPECT_EQ(edges.size(), dims.size() * cycles.front().size());
}

TEST(DisjointCycles, HaveEveryEdgeOnceOfTwoDimensions) {
  for (int a = 3; a <= 16; ++a) {
    for (int b = 3; b <= 16; ++b) expect_every_edge_once({a, b});
  }
}

TEST(DisjointCycles, HaveEveryEdgeOnceOfThreeDimensions) {
  for (int a = 3; a <= 9; ++a) {
    for (int b = 3; b <= 9; ++b) {
      for (int c = 3; c <= 9; ++c) expect_every_edge_once({a, b, c});
    }
  }
  expect_every_edge_once({101, 4, 4});
  expect_every_edge_once({4, 100, 4});
}

TEST(DisjointCycles, HaveEveryEdgeOnceOfMoreDimensions) {
  for (int code = 0; code < 3 * 3 * 3 * 3; ++code) {
    Dims dims;
    for (int rest = code; dims.size() < 4; rest /= 3) dims.push_back(3 + rest % 3);
    expect_every_edge_once(dims);
  }
  for (const Dims& dims : {Dims{3, 3, 3, 3, 3},
                           {4, 4, 4, 4, 4},
                           {3, 4, 5, 4, 3},
                           {5, 3, 3, 4, 6},
                           {3, 3, 4, 4, 3, 3},
                           {3, 3, 3, 4, 3, 3, 3}}) {
    expect_every_edge_once(dims);
  }
}

TEST(DisjointCycles, CarryOneMessageOnEveryLinkInEveryRound) {
  for (const Dims& dims : {Dims{7}, {3, 3}, {4, 6}, {7, 5}, {4, 3}, {3, 4, 3}, {4, 4, 4}}) {
    const Torus torus(dims);
    const Schedule s = hamiltonian_disjoint_all_gather(dims);
    EXPECT_EQ(failure(s, {Collective::all_gather, s.ranks, s.blocks}), "");
    for (int k = 0; k < s.rounds; ++k) {
      std::set<std::pair<Rank, Rank>> links;
      for_each_transfer(s, k, [&](const Transfer& t) {
        EXPECT_TRUE(neighbours(dims, t.from.front(), t.to.front()));
        EXPECT_TRUE(links.insert({t.from.front(), t.to.front()}).second);
      });
      EXPECT_EQ(static_cast<int>(links.size()), 2 * torus.dimensions() * s.ranks);
    }
  }
}

// The dimensions that the messages of each part use, by round.
std::vector<std::map<int, std::set<int>>> dimensions_used(const Schedule& s, const Torus& torus,
                                                          int parts) {
  std::vector<std::map<int, std::set<int>>> out(static_cast<std::size_t>(s.rounds));
  for (int k = 0; k < s.rounds; ++k) {
    for_each_transfer(s, k, [&](const Transfer& t) {
      for (int d = 0; d < torus.dimensions(); ++d) {
        if (torus.coordinate(t.from.front(), d) == torus.coordinate(t.to.front(), d)) continue;
        out[static_cast<std::size_t>(k)][t.what.list.front() % parts].insert(d);
      }
    });
  }
  return out;
}

TEST(Torus, CollectivesSideBySideMeetInTheLargestDimensionOnly) {
  for (const Dims& dims : kShapes) {
    const Torus torus(dims);
    const int d = torus.dimensions();
    const auto disjoint = [&](const Schedule& s, int parts) {
      for (const auto& round : dimensions_used(s, torus, parts)) {
        // Parts i and i + D are a collective and its mirror image, which use disjoint links.
        std::map<int, int> users;
        for (const auto& [part, used] : round) {
          EXPECT_EQ(used.size(), 1u) << "a part in two dimensions";
          ++users[*used.begin()];
        }
        for (const auto& [dimension, many] : users) {
          const bool largest = std::all_of(dims.begin(), dims.end(), [&](int size) {
            return size < torus.size(dimension) ||
                   size == dims[static_cast<std::size_t>(dimension)];
          });
          const bool only = std::count(dims.begin(), dims.end(), torus.size(dimension)) == 1;
          EXPECT_TRUE(many == parts / d || (largest && only)) << dimension;
        }
      }
    };
    SCOPED_TRACE(dims_text(dims));
    disjoint(trivance_all_reduce(dims), d);
    disjoint(bucket_all_reduce(dims), 2 * d);
    disjoint(trivance_latency_all_reduce(dims), d);
  }
}

// One part of a collective in one round: its dimension, and the vectors that cross each link.
struct PartOfRound {
  int dimension = -1;
  std::map<int, double> links;  // key: 2 * rank, plus 1 for the link down
};

// The busy rounds of each part.
std::vector<std::vector<PartOfRound>> parts_of(const Schedule& s, const Torus& torus, int parts) {
  std::vector<std::vector<PartOfRound>> out(static_cast<std::size_t>(parts));
  for (int k = 0; k < s.rounds; ++k) {
    std::vector<PartOfRound> round(static_cast<std::size_t>(parts));
    for_each_transfer(s, k, [&](const Transfer& t) {
      PartOfRound& of = round[static_cast<std::size_t>(t.what.list.front() % parts)];
      const Rank from = t.from.front(), to = t.to.front();
      for (int d = 0; d < torus.dimensions(); ++d) {
        const int n = torus.size(d), x = torus.coordinate(from, d);
        const int way = (torus.coordinate(to, d) - x + n) % n;
        if (way == 0) continue;
        of.dimension = d;
        const auto cross = [&](int side, int hops, double amount) {
          for (int h = 0, y = x; h < hops; ++h, y = (y + side + n) % n) {
            of.links[2 * (from + (y - x) * torus.stride(d)) + (side < 0)] += amount;
          }
        };
        const double amount = static_cast<double>(t.what.list.size()) / s.blocks;
        if (2 * way < n) cross(1, way, amount);
        if (2 * way > n) cross(-1, n - way, amount);
        if (2 * way == n) {
          cross(1, way, amount / 2);
          cross(-1, way, amount / 2);
        }
      }
    });
    for (int part = 0; part < parts; ++part) {
      const PartOfRound& of = round[static_cast<std::size_t>(part)];
      if (of.dimension >= 0) out[static_cast<std::size_t>(part)].push_back(of);
    }
  }
  return out;
}

// Eq. (1) of Trivance: the load of the busiest link of each round, summed over all rounds.
double load_of(const std::vector<std::vector<PartOfRound>>& rounds) {
  double sum = 0;
  for (const auto& round : rounds) {
    std::map<std::pair<int, int>, double> all;
    for (const PartOfRound& of : round) {
      for (const auto& [link, amount] : of.links) all[{of.dimension, link}] += amount;
    }
    double most = 0;
    for (const auto& [link, amount] : all) most = std::max(most, amount);
    sum += most;
  }
  return sum;
}

// The parts with idle turns: every dimension's turns last as long as those of the largest one.
std::vector<std::vector<PartOfRound>> with_idle_turns(
    const std::vector<std::vector<PartOfRound>>& parts, const Torus& torus, bool rotating) {
  const int dimensions = torus.dimensions();
  int most = 0;
  for (int d = 0; d < dimensions; ++d) {
    most = std::max(most, static_cast<int>(std::count_if(
                              parts[0].begin(), parts[0].end(),
                              [d](const PartOfRound& of) { return of.dimension == d; })));
  }
  std::vector<std::vector<PartOfRound>> out(static_cast<std::size_t>(most * dimensions));
  for (std::size_t part = 0; part < parts.size(); ++part) {
    std::size_t next = 0;
    for (int t = 0; t < most * dimensions && next < parts[part].size(); ++t) {
      const int turn = (rotating ? t : t / most) % dimensions;
      const int d = (static_cast<int>(part) + turn) % dimensions;
      if (parts[part][next].dimension != d) continue;
      out[static_cast<std::size_t>(t)].push_back(parts[part][next++]);
    }
    EXPECT_EQ(next, parts[part].size());
  }
  return out;
}

std::vector<std::vector<PartOfRound>> as_stated(const Schedule& s, const Torus& torus, int parts) {
  std::vector<std::vector<PartOfRound>> out;
  for (int k = 0; k < s.rounds; ++k) {
    const Schedule one{s.ranks, s.blocks, 1, [&s, k](int, Send send) { s.round(k, send); }};
    out.emplace_back();
    for (const auto& rounds : parts_of(one, torus, parts)) {
      out.back().insert(out.back().end(), rounds.begin(), rounds.end());
    }
  }
  return out;
}

// Leaving out idle turns does not raise the busiest links' load, summed over all rounds.
TEST(Torus, NoTurnIsIdleWhereLinksAllow) {
  EXPECT_EQ(trivance_all_reduce({3, 5}).rounds, 6);
  EXPECT_EQ(bruck_ternary_all_reduce({3, 5}).rounds, 6);
  EXPECT_EQ(bucket_all_reduce({3, 5}).rounds, 12);
  EXPECT_EQ(bucket_all_reduce({2, 2, 7}).rounds, 2 * (1 + 1 + 6));
  for (const Dims& dims : {Dims{3, 5},
                           {5, 3},
                           {2, 9},
                           {4, 8},
                           {7, 3},
                           {2, 3, 4},
                           {2, 4, 4},
                           {3, 4, 5},
                           {9, 3, 2},
                           {2, 2, 3, 5},
                           {2, 3, 2, 7}}) {
    SCOPED_TRACE(dims_text(dims));
    const Torus torus(dims);
    const int d = torus.dimensions();
    const auto compare = [&](const Schedule& s, int parts, bool rotating) {
      const auto rounds = parts_of(s, torus, parts);
      const auto before = with_idle_turns(rounds, torus, rotating);
      EXPECT_LE(s.rounds, static_cast<int>(before.size()));
      EXPECT_LE(load_of(as_stated(s, torus, parts)), load_of(before) + 1e-9);
      EXPECT_GE(static_cast<std::size_t>(s.rounds), rounds[0].size());
      EXPECT_TRUE(d > 2 || static_cast<std::size_t>(s.rounds) == rounds[0].size());
    };
    compare(trivance_reduce_scatter(dims), d, true);
    compare(bruck_ternary_reduce_scatter(dims), d, true);
    compare(bucket_reduce_scatter(dims), 2 * d, false);
  }
}

TEST(Torus, ReduceScattersBeginWithTheNearest) {
  const Dims dims = {9, 9};
  const Torus torus(dims);
  const auto distance = [&](const Schedule& s, int k) {
    int most = 0;
    for_each_transfer(s, k, [&](const Transfer& t) {
      for (int d = 0; d < 2; ++d) {
        const int gap =
            std::abs(torus.coordinate(t.from.front(), d) - torus.coordinate(t.to.front(), d));
        most = std::max(most, std::min(gap, 9 - gap));
      }
    });
    return most;
  };
  const Schedule s = trivance_all_reduce(dims);
  std::vector<int> distances;
  for (int k = 0; k < s.rounds; ++k) distances.push_back(distance(s, k));
  EXPECT_EQ(distances, (std::vector<int>{1, 1, 3, 3, 3, 3, 1, 1}));
}

TEST(Bucket, GivesTheRightNumbersOnEveryTorus) {
  for (const Dims& dims : kShapes) {
    const int n = product(dims);
    SCOPED_TRACE(dims_text(dims));
    for (const auto& make : {bucket_all_reduce, hamiltonian_all_reduce}) {
      const Schedule s = make(dims);
      EXPECT_EQ(failure(s, {Collective::all_reduce, n, s.blocks, 0, 0}), "");
    }
    for (const auto& make : {bucket_all_gather, hamiltonian_all_gather}) {
      const Schedule s = make(dims);
      EXPECT_EQ(failure(s, {Collective::all_gather, n, s.blocks, 0, 0}), "");
    }
  }
}

TEST(Bucket, AndHamiltonianRingsOnlyTalkToNeighbours) {
  for (const Dims& dims : kShapes) {
    if (product(dims) == 1) continue;
    for (const auto& make : {bucket_all_reduce, hamiltonian_all_reduce}) {
      const Schedule s = make(dims);
      for (int k = 0; k < s.rounds; ++k) {
        for_each_transfer(s, k, [&](const Transfer& t) {
          EXPECT_TRUE(neighbours(dims, t.from.front(), t.to.front())) << dims_text(dims);
        });
      }
    }
  }
}

}  // namespace

namespace {

TEST(Swing, PartnersAreMutual) {
  for (const int a : {2, 4, 6, 8, 10, 12, 16, 22, 64}) {
    for (int k = 0; k < ceil_log2(a); ++k) {
      for (Rank r : ranks(a)) {
        const Rank partner = swing_partner(a, r, k);
        EXPECT_NE(partner, r);
        EXPECT_EQ(swing_partner(a, partner, k), r) << a << ", round " << k;
      }
    }
  }
}

// Section 3 of the Swing paper: distances 1, 1, 3, 5, 11 to alternating sides.
TEST(Swing, SwingsFromSideToSide) {
  std::vector<int> ways;
  for (int k = 0; k < 5; ++k) ways.push_back(swing_partner(1024, 512, k) - 512);
  EXPECT_EQ(ways, (std::vector<int>{1, -1, 3, -5, 11}));
}

void expect_right(const std::vector<int>& dims, Schedule (*make)(const std::vector<int>&),
                  Collective collective) {
  SCOPED_TRACE(dims_text(dims));
  const Schedule s = make(dims);
  EXPECT_EQ(failure(s, {collective, Torus(dims).ranks(), s.blocks, 0, 0}), "");
}

TEST(Swing, ExchangesGiveTheRightNumbers) {
  for (const std::vector<int>& dims :
       std::vector<std::vector<int>>{{2}, {8}, {16}, {2, 4}, {4, 2}, {4, 4}, {2, 2, 4}}) {
    for (const auto& make : {swing_all_reduce, swing_latency_all_reduce, torus_doubling_all_reduce,
                             torus_doubling_latency_all_reduce}) {
      expect_right(dims, make, Collective::all_reduce);
    }
    for (const auto& make : {swing_all_gather, torus_doubling_all_gather}) {
      expect_right(dims, make, Collective::all_gather);
    }
  }
}

TEST(Swing, HalvesOnAnyEvenLine) {
  for (const std::vector<int>& dims : std::vector<std::vector<int>>{
           {6}, {10}, {12}, {36}, {100}, {6, 4}, {4, 6}, {1, 6}, {12, 10}, {6, 2, 10}}) {
    expect_right(dims, swing_all_reduce, Collective::all_reduce);
    expect_right(dims, swing_all_gather, Collective::all_gather);
    expect_right(dims, swing_reduce_scatter, Collective::reduce_scatter);
  }
}

TEST(Swing, WholeVectorsAreFoldedOnOtherLines) {
  for (const std::vector<int>& dims :
       std::vector<std::vector<int>>{{3}, {6}, {27}, {3, 5}, {5, 4}, {27, 3}, {3, 4, 5}, {1, 7}}) {
    expect_right(dims, swing_latency_all_reduce, Collective::all_reduce);
    expect_right(dims, torus_doubling_latency_all_reduce, Collective::all_reduce);
  }
}

// On an odd line Swing folds one rank; doubling folds all ranks beyond a power of two.
TEST(Swing, HalvesOnAnyTorusWithTheRestFolded) {
  for (const std::vector<int>& dims : std::vector<std::vector<int>>{
           {3}, {7}, {9}, {33}, {3, 4}, {4, 3}, {5, 7}, {6, 6}, {3, 4, 5}, {1, 5}, {7, 2, 6}}) {
    for (const auto& make : {swing_all_reduce, torus_doubling_all_reduce}) {
      expect_right(dims, make, Collective::all_reduce);
    }
    for (const auto& make : {swing_all_gather, torus_doubling_all_gather}) {
      expect_right(dims, make, Collective::all_gather);
    }
    for (const auto& make : {swing_reduce_scatter, torus_doubling_reduce_scatter}) {
      expect_right(dims, make, Collective::reduce_scatter);
    }
  }
}

// A rank collects the blocks of all the ranks that it reaches in later rounds, as in Swing's
// recursion.
TEST(Swing, HearsOfWhomItReaches) {
  EXPECT_EQ(heard_of(8, 0, 3, swing_partner), (std::vector<Rank>{0}));
  EXPECT_EQ(heard_of(8, 0, 2, swing_partner), (std::vector<Rank>{0, 3}));
  EXPECT_EQ(heard_of(8, 0, 1, swing_partner), (std::vector<Rank>{0, 3, 4, 7}));
  EXPECT_EQ(heard_of(8, 0, 0, swing_partner), (std::vector<Rank>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(heard_of(8, 5, 1, doubling_partner), (std::vector<Rank>{1, 3, 5, 7}));
}

}  // namespace

namespace {

TEST(Trivance, DistancesAreThirdsAndAddUpToHalfTheRing) {
  for (int n = 1; n <= 3000; ++n) {
    const std::vector<int> distances = trivance_thirds(n);
    EXPECT_EQ(static_cast<int>(distances.size()), ceil_log3(n)) << n;
    int sum = 0;
    for (const int d : distances) sum += d;
    EXPECT_EQ(sum, n / 2) << n;
  }
  EXPECT_EQ(trivance_thirds(5), (std::vector{1, 1}));
  EXPECT_EQ(trivance_thirds(64), (std::vector{21, 7, 3, 1}));
  EXPECT_EQ(trivance_thirds(81), (std::vector{27, 9, 3, 1}));
}

// In ceil(log3 n) rounds every block reaches every rank once, equally often in both directions.
TEST(Trivance, AllGatherSendsEveryBlockOnceAndAsManyUpAsDown) {
  for (int n = 1; n <= 300; ++n) {
    const Schedule s = trivance_line(n);
    EXPECT_EQ(s.rounds, ceil_log3(n));
    int up = 0, down = 0, load = 0;
    for (int k = 0; k < s.rounds; ++k) {
      for_each_transfer(s, k, [&](const Transfer& t) {
        if (t.from.front() != 0) return;
        (2 * t.to.front() <= n ? up : down) += t.what.list.size();
        if (2 * t.to.front() <= n) load += t.what.list.size() * t.to.front();
      });
    }
    EXPECT_EQ(up + down, n - 1) << n;
    EXPECT_EQ(up, n / 2) << n;
    // The load of a link is at most 9/8 of the load at powers of three.
    if (n > 2) {
      EXPECT_LE(24 * load, 9 * n * s.rounds) << n;
    }
    if (n > 100 && n != 255 && n != 256) continue;
    EXPECT_EQ(failure(s, {Collective::all_gather, n, n, 0, 0}), "") << n;
  }
}

// On tori the better of two rules is used; each is the better one on some tori.
TEST(Trivance, BothRulesSendEveryBlockOnceOnTori) {
  for (int n = 1; n <= 40; ++n) {
    for (const int dimensions : {2, 3, 4}) {
      EXPECT_EQ(failure(trivance_line(n, dimensions), {Collective::all_gather, n, n, 0, 0}), "")
          << n << ", " << dimensions;
    }
  }
  const auto first = [](int n, int dimensions) {
    Rank to = 0;
    for_each_transfer(trivance_line(n, dimensions), 0, [&](const Transfer& t) {
      if (to == 0 && t.from.front() == 0) to = t.to.front();
    });
    return to;
  };
  EXPECT_EQ(first(16, 1), 5);
  EXPECT_EQ(first(16, 3), 9);
  EXPECT_EQ(first(32, 2), 11);
}

// Section 4.1: partners at distance 3^k on both sides.
TEST(Trivance, PartnersAreThePapers) {
  const Schedule s = trivance_all_reduce({27});
  std::set<std::string> firsts;
  for (int k = 0; k < s.rounds; ++k) {
    for_each_transfer(s, k, [&](const Transfer& t) {
      if (t.from.front() != 0) return;
      const int way = t.to.front() > 13 ? t.to.front() - 27 : t.to.front();
      firsts.insert(std::to_string(k) + ":" + std::to_string(way) + " x" +
                    std::to_string(t.what.list.size()));
    });
  }
  EXPECT_EQ(firsts,
            (std::set<std::string>{"0:-1 x9", "0:1 x9", "1:-3 x3", "1:3 x3", "2:-9 x1", "2:9 x1",
                                   "3:9 x1", "3:-9 x1", "4:3 x3", "4:-3 x3", "5:1 x9", "5:-1 x9"}));
}

// Algorithm 1 of the paper: each rank sends all that it has to both sides, at distance 3^k.
TEST(Trivance, PlanIsThePapersForPowersOfThree) {
  int n = 1;
  for (int s = 1; s <= 7; ++s) {
    n *= 3;
    const RunPlan plan = trivance_plan(n);
    ASSERT_EQ(static_cast<int>(plan.size()), s);
    for (int k = 0; k < s; ++k) {
      const auto& round = plan[static_cast<std::size_t>(k)];
      ASSERT_EQ(round.size(), 2u);
      EXPECT_EQ(round[0].distance, power_of_three(k));
      EXPECT_EQ(round[1].distance, -power_of_three(k));
      EXPECT_TRUE(round[0].parts.all() && round[1].parts.all());
    }
  }
}

TEST(Trivance, PlanReachesAllInAsFewRoundsAsCanBe) {
  std::vector<int> sizes = {8192, 65'536, 1'000'000};  // the search skips some plans at these sizes
  for (int n = 1; n <= 800; n += n < 250 ? 1 : 37) sizes.push_back(n);
  for (const int n : sizes) {
    const RunPlan plan = trivance_plan(n);
    EXPECT_EQ(static_cast<int>(plan.size()), ceil_log3(n));
    Runs runs;
    for (const auto& round : plan) {
      EXPECT_LE(round.size(), 2u);
      const Runs theirs = runs;
      for (const RunMessage& message : round) {
        const bool left = message.distance > 0;
        EXPECT_EQ(message.distance, left
                                        ? message_from_left(theirs, runs, message.parts).distance
                                        : message_from_right(theirs, runs, message.parts).distance);
        (left ? runs.left : runs.right) += theirs.length(message.parts);
      }
    }
    EXPECT_EQ(runs.total(), n);
  }
}

TEST(Trivance, GivesTheRightNumbersOnTori) {
  for (const std::vector<int>& dims : std::vector<std::vector<int>>{
           {2}, {3, 3}, {3, 5}, {5, 3}, {4, 4}, {2, 7}, {3, 3, 3}, {2, 3, 4}, {5, 2, 5}}) {
    const int n = Torus(dims).ranks();
    SCOPED_TRACE(dims_text(dims));
    for (const auto& make : {trivance_all_reduce, trivance_latency_all_reduce}) {
      const Schedule s = make(dims);
      EXPECT_EQ(failure(s, {Collective::all_reduce, n, s.blocks, 0, 0}), "");
    }
  }
}

}  // namespace

namespace {

const std::vector<int> kTori[] = {{5, 5}, {7, 7, 7}, {25, 25}};

// Every rank is the sum of exactly one choice of digits, one digit per round.
TEST(TrivanceCross, SumsOfCrossesMeetEveryRankOnce) {
  for (const std::vector<int>& dims : kTori) {
    const Rotation rotation(dims, 1, Moves::nothing);
    std::vector<Rank> sums = {0};
    for (const std::vector<Rank>& ends : cross_ends(dims)) {
      EXPECT_EQ(ends.size(), 2 * dims.size());
      std::vector<Rank> more = sums;
      for (const Rank end : ends) {
        for (const Rank r : sums) more.push_back(rotation.rotated(r, end));
      }
      sums = more;
    }
    EXPECT_EQ(static_cast<int>(sums.size()), rotation.ranks());
    EXPECT_EQ(std::set<Rank>(sums.begin(), sums.end()).size(), sums.size());
  }
}

// In two dimensions the crosses are i^j (2 + i)^k; the factors 2 + i and 2 - i of five alternate.
TEST(TrivanceCross, TwoDimensionsAreTheGaussianIntegers) {
  const std::vector<int> dims = {25, 25};
  std::complex<int> centre = 1;
  int round = 0;
  for (const std::vector<Rank>& ends : cross_ends(dims)) {
    std::set<Rank> expected;
    for (const std::complex<int> unit : {std::complex{1, 0}, {0, 1}, {-1, 0}, {0, -1}}) {
      const std::complex<int> z = centre * unit;
      expected.insert(wrapped(z.real(), 25) * 25 + wrapped(z.imag(), 25));
    }
    EXPECT_EQ(std::set<Rank>(ends.begin(), ends.end()), expected) << round;
    centre *= std::complex{2, round % 2 == 0 ? 1 : -1};
    ++round;
  }
  EXPECT_EQ(round, 4);
}

// The ends of a cross need equally many hops along every dimension in either direction, so all 2D
// ports of a rank carry the same load.
TEST(TrivanceCross, LoadsAllPortsOfTheTorusAlike) {
  for (const std::vector<int>& dims : kTori) {
    const Torus torus(dims);
    for (const std::vector<Rank>& ends : cross_ends(dims)) {
      std::set<int> hops;  // per dimension and direction
      for (int d = 0; d < torus.dimensions(); ++d) {
        int up = 0, down = 0;
        for (const Rank end : ends) {
          const int x = torus.coordinate(end, d), size = torus.size(d);
          (2 * x < size ? up : down) += 2 * x < size ? x : size - x;
        }
        hops.insert(up);
        hops.insert(down);
      }
      EXPECT_EQ(hops.size(), 1u);
    }
  }
}

// 2D ports need at least this number of rounds: a rank with the data of h ranks has that of (2D +
// 1) h after one more round.
TEST(TrivanceCross, TakesAsManyRoundsAsTheLogarithmToTheBaseOfItsPorts) {
  EXPECT_EQ(trivance_cross_latency_all_reduce({27}).rounds, 3);
  EXPECT_EQ(trivance_cross_latency_all_reduce({5, 5}).rounds, 2);
  EXPECT_EQ(trivance_cross_latency_all_reduce({25, 25}).rounds, 4);
  EXPECT_EQ(trivance_cross_latency_all_reduce({7, 7, 7}).rounds, 3);
  EXPECT_EQ(trivance_latency_all_reduce({5, 5}).rounds, 4);
}

TEST(TrivanceCross, GivesTheRightNumbers) {
  for (const std::vector<int>& dims : {std::vector{1}, {2}, {9}, {14}, {5, 5}, {7, 7, 7}}) {
    SCOPED_TRACE(dims_text(dims));
    const Schedule gather = trivance_cross_all_gather(dims);
    const int n = gather.ranks;
    EXPECT_EQ(failure(gather, {Collective::all_gather, n, n, 0, 0}), "");
    const Schedule scatter = trivance_cross_reduce_scatter(dims);
    EXPECT_EQ(failure(scatter, {Collective::reduce_scatter, n, n, 0, 0}), "");
    for (const auto& make : {trivance_cross_all_reduce, trivance_cross_latency_all_reduce}) {
      const Schedule s = make(dims);
      EXPECT_EQ(failure(s, {Collective::all_reduce, n, s.blocks, 0, 0}), "");
    }
  }
}

TEST(TrivanceCross, RefusalsNameTheSizesThatAreTaken) {
  const Algorithm& entry = *find_algorithm(Collective::all_gather, "trivance_cross");
  const auto refused = [&entry](const std::vector<int>& dims) {
    return entry.refusal({.ranks = Torus(dims).ranks(), .dims = dims}).has_value();
  };
  for (const std::vector<int>& dims : {std::vector{1}, {30}, {5, 5}, {25, 25}, {7, 7, 7}}) {
    EXPECT_FALSE(refused(dims)) << dims_text(dims);
  }
  for (const std::vector<int>& dims :
       {std::vector{3, 3}, {5, 25}, {25, 5}, {7, 7}, {5, 5, 5}, {7, 7, 49}, {2, 2, 2, 2}, {9, 9}}) {
    EXPECT_TRUE(refused(dims)) << dims_text(dims);
  }
  EXPECT_TRUE(entry.refusal({.ranks = 16, .dims = {4, 4}})
                  .value_or("")
                  .starts_with("all_gather 'trivance_cross': ranks is 16, dims is 4x4"));
}

}  // namespace
}  // namespace rankine
