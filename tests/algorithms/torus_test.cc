#include "algorithms/torus.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "algorithms/bucket.h"
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

// Whether two ranks are neighbours, from coordinates worked out by hand.
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
    EXPECT_EQ(r, (torus.coordinate(r, 0) * 3 + torus.coordinate(r, 1)) * 4 + torus.coordinate(r, 2));
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
  EXPECT_EQ(dims_refusal({4, 4}, 15),
            "dims is 4x4; the sizes must multiply to the number of ranks, 15");
  EXPECT_EQ(dims_refusal({65536, 65536, 65536}, 15),
            "dims is 65536x65536x65536; the sizes must multiply to the number of ranks, 15");
  EXPECT_EQ(dims_refusal({5, 1}, 5), "dims is 5x1; every size must be at least 2");
  EXPECT_EQ(dims_refusal({-5, -1}, 5), "dims is -5x-1; every size must be at least 2");
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

// By round: in which dimension the messages of each part travel.
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

TEST(Torus, CollectivesSideBySideAreNeverInOneDimension) {
  for (const Dims& dims : kShapes) {
    const Torus torus(dims);
    const int d = torus.dimensions();
    const auto disjoint = [&](const Schedule& s, int parts) {
      for (const auto& round : dimensions_used(s, torus, parts)) {
        // Parts i and i + D are one collective and its mirror image: on links of their own.
        std::map<int, int> users;
        for (const auto& [part, used] : round) {
          EXPECT_EQ(used.size(), 1u) << "a part in two dimensions";
          ++users[*used.begin()];
        }
        for (const auto& [dimension, many] : users) EXPECT_EQ(many, parts / d) << dimension;
      }
    };
    SCOPED_TRACE(dims_text(dims));
    disjoint(trivance_all_reduce(dims), d);
    disjoint(bucket_all_reduce(dims), 2 * d);
    disjoint(trivance_latency_all_reduce(dims), d);
  }
}

TEST(Torus, ReduceScattersBeginWithTheNearest) {
  const Dims dims = {9, 9};
  const Torus torus(dims);
  const auto distance = [&](const Schedule& s, int k) {
    int most = 0;
    for_each_transfer(s, k, [&](const Transfer& t) {
      for (int d = 0; d < 2; ++d) {
        const int gap = std::abs(torus.coordinate(t.from.front(), d) -
                                 torus.coordinate(t.to.front(), d));
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
}  // namespace rankine
