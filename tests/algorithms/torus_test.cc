#include <complex>

#include "algorithms/bruck.h"
#include "algorithms/catalogue.h"
#include "algorithms/exchange.h"
#include "algorithms/schedule/rotation_symmetric.h"
#include "algorithms/torus.h"
#include "algorithms/torus_rings.h"
#include "algorithms/trivance.h"
#include "tests/algorithms/reference.h"
#include "tests/testing.h"

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

TEST(Torus, RefusesSizesThatDoNotFit) {
  EXPECT_EQ(dims_refusal({4, 4}, 16), std::nullopt);
  EXPECT_EQ(dims_refusal({1}, 1), std::nullopt);
  const std::pair<Dims, int> refused[] = {
      {{4, 4}, 15}, {{65536, 65536, 65536}, 15}, {{5, 1}, 5}, {{-5, -1}, 5}};
  for (const auto& [dims, n] : refused) {
    EXPECT_TRUE(dims_refusal(dims, n).value_or("").starts_with("dims is " + dims_text(dims)));
  }
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
    disjoint(bucket_all_reduce(dims, Turns::whole), 2 * d);
    disjoint(trivance_latency_all_reduce(dims), d);
  }
}

// Jain & Sabharwal's promise: no link carries two messages in a round, on uneven tori either.
TEST(Bucket, KeepsItsCollectivesApart) {
  for (const Dims& dims : kShapes) {
    const int d = Torus(dims).dimensions();
    for (const auto& round : dimensions_used(bucket_all_reduce(dims), Torus(dims), 2 * d)) {
      std::map<int, int> users;
      for (const auto& [part, used] : round) ++users[*used.begin()];
      for (const auto& [dimension, many] : users) EXPECT_LE(many, 2) << dims_text(dims);
    }
  }
}

TEST(Bucket, AndHamiltonianRingsOnlyTalkToNeighbours) {
  for (const Dims& dims : kShapes) {
    if (product(dims) == 1) continue;
    for (const Schedule& s : {bucket_all_reduce(dims), hamiltonian_all_reduce(dims)}) {
      for (int k = 0; k < s.rounds; ++k) {
        for_each_transfer(s, k, [&](const Transfer& t) {
          EXPECT_TRUE(neighbours(dims, t.from.front(), t.to.front())) << dims_text(dims);
        });
      }
    }
  }
}

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

// A rank collects the blocks of all the ranks that it reaches in later rounds, as in Swing's
// recursion.
TEST(Swing, HearsOfWhomItReaches) {
  EXPECT_EQ(heard_of(8, 0, 3, swing_partner), (std::vector<Rank>{0}));
  EXPECT_EQ(heard_of(8, 0, 2, swing_partner), (std::vector<Rank>{0, 3}));
  EXPECT_EQ(heard_of(8, 0, 1, swing_partner), (std::vector<Rank>{0, 3, 4, 7}));
  EXPECT_EQ(heard_of(8, 0, 0, swing_partner), (std::vector<Rank>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(heard_of(8, 5, 1, doubling_partner), (std::vector<Rank>{1, 3, 5, 7}));
}

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

// The blocks that the busiest link carries, of D per rank: on 4 x 4 the bound is 7.5 (15 / 2).
TEST(Trivance, BlocksThatGoHalfWayRoundComeFromBothSidesOnTori) {
  const std::pair<Dims, int> loads[] = {
      {{16, 16}, 179}, {{4, 8}, 24},    {{8, 8, 4, 4}, 656}, {{4, 4}, 8}, {{8, 8}, 40},
      {{9, 9}, 48},    {{4, 4, 4}, 32}, {{10, 10}, 58},      {{4}, 2},    {{4, 4, 4, 4}, 128}};
  for (const auto& [dims, expected] : loads) {
    const Schedule s = trivance_all_gather(dims);
    const Torus torus(dims);
    int load = 0;
    for (int k = 0; k < s.rounds; ++k) {
      std::map<std::pair<int, bool>, int> sides;  // rank 0's load by dimension and direction
      for_each_transfer(symmetry_of(s)->part(), k, [&](const Transfer& t) {
        ASSERT_EQ(t.from.front(), 0);
        for (int d = 0; d < torus.dimensions(); ++d) {
          const int way = torus.coordinate(t.to.front(), d), back = torus.size(d) - way;
          if (way > 0) sides[{d, way <= back}] += std::min(way, back) * t.what.list.size();
        }
      });
      int most = 0;
      for (const auto& [side, carried] : sides) most = std::max(most, carried);
      load += most;
    }
    EXPECT_EQ(load, expected) << dims_text(dims);
    if (s.ranks <= 256) {
      EXPECT_EQ(failure(s, {Collective::all_gather, s.ranks, s.blocks, 0, 0}), "")
          << dims_text(dims);
    }
  }
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
