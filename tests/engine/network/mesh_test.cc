// Meshes and hypercubes against an oracle that knows only who is wired to whom: breadth-first
// search for lengths, and walks of its own for loads.
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/torus.h"
#include "engine/network/prices.h"
#include "engine/network/wiring.h"

namespace rankine {
namespace {

using Dims = std::vector<int>;
using Wire = std::pair<Rank, Rank>;
using Wired = std::function<bool(Rank, Rank)>;

const std::vector<Dims> kMeshes = {{1}, {2}, {7}, {2, 3}, {4, 4}, {5, 3}, {3, 3, 3}, {2, 2, 5}};

struct Case {
  std::string name;
  Wiring wiring;
  int ranks;
  Wired wired;
  Dims dims;
};

std::vector<int> coordinates(Rank r, const Dims& dims) {
  std::vector<int> at(dims.size());
  for (std::size_t d = dims.size(); d-- > 0; r /= dims[d]) at[d] = r % dims[d];
  return at;
}

// Neighbours on a grid without wires round it: one coordinate differs, by one.
bool next_to(Rank a, Rank b, const Dims& dims) {
  const auto x = coordinates(a, dims), y = coordinates(b, dims);
  int apart = 0;
  for (std::size_t d = 0; d < dims.size(); ++d) apart += std::abs(x[d] - y[d]);
  return apart == 1;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Dims& dims : kMeshes) {
    int n = 1;
    for (const int size : dims) n *= size;
    all.push_back({"mesh " + dims_text(dims),
                   {.kind = WiringKind::mesh, .dims = dims},
                   n,
                   [dims](Rank a, Rank b) { return next_to(a, b, dims); },
                   dims});
  }
  for (const int n : {1, 2, 4, 8, 32}) {
    const auto differ_in_one_bit = [](Rank a, Rank b) {
      return std::popcount(static_cast<unsigned>(a ^ b)) == 1;
    };
    all.push_back({"hypercube " + std::to_string(n),
                   {.kind = WiringKind::hypercube},
                   n,
                   differ_in_one_bit,
                   Dims(static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(n))), 2)});
  }
  return all;
}

Routes routes_of(const Case& c) {
  const auto routes = Routes::make(c.wiring, c.ranks);
  EXPECT_TRUE(routes.ok()) << routes.status().text();
  return *routes;
}

std::vector<int> distances(const Case& c, Rank from) {
  std::vector<int> distance(static_cast<std::size_t>(c.ranks), -1);
  std::queue<Rank> next;
  distance[static_cast<std::size_t>(from)] = 0;
  for (next.push(from); !next.empty(); next.pop()) {
    for (Rank r = 0; r < c.ranks; ++r) {
      int& there = distance[static_cast<std::size_t>(r)];
      if (there >= 0 || !c.wired(next.front(), r)) continue;
      there = distance[static_cast<std::size_t>(next.front())] + 1;
      next.push(r);
    }
  }
  return distance;
}

// The ends of every link, found from messages between neighbours: each takes one link.
std::map<int, Wire> wires_of(const Case& c, const Routes& routes) {
  std::map<int, Wire> wires;
  for (Rank a = 0; a < c.ranks; ++a) {
    for (Rank b = 0; b < c.ranks; ++b) {
      if (!c.wired(a, b)) continue;
      int links = 0;
      routes.for_each_link(a, b, [&](int link, int) {
        ++links;
        EXPECT_TRUE(0 <= link && link < routes.links()) << c.name;
        EXPECT_TRUE(wires.emplace(link, Wire{a, b}).second)
            << c.name << ": link " << link << " joins two pairs of neighbours";
      });
      EXPECT_EQ(links, 1) << c.name << ": " << a << " to " << b;
    }
  }
  return wires;
}

TEST(Mesh, RoutesAreShortestWaysAlongItsWires) {
  for (const Case& c : cases()) {
    const Routes routes = routes_of(c);
    const auto wires = wires_of(c, routes);
    for (Rank a = 0; a < c.ranks; ++a) {
      const auto distance = distances(c, a);
      for (Rank b = 0; b < c.ranks; ++b) {
        const std::string what = c.name + ": " + std::to_string(a) + " to " + std::to_string(b);
        EXPECT_EQ(routes.hops(a, b), distance[static_cast<std::size_t>(b)]) << what;
        Rank at = a;
        int steps = 0;
        routes.for_each_link(a, b, [&](int link, int halves) {
          ASSERT_EQ(wires.count(link), 1U) << what << ": no wire is link " << link;
          EXPECT_EQ(wires.at(link).first, at) << what;
          EXPECT_EQ(halves, 2) << what;
          at = wires.at(link).second;
          ++steps;
        });
        EXPECT_EQ(at, b) << what;
        EXPECT_EQ(steps, distance[static_cast<std::size_t>(b)]) << what;
      }
    }
  }
}

// The way of a message in the order of dimensions, wire by wire, from coordinates alone.
std::vector<Wire> walk(Rank from, Rank to, const Dims& dims) {
  std::vector<Wire> way;
  auto at = coordinates(from, dims);
  const auto end = coordinates(to, dims);
  const auto rank_at = [&dims](const std::vector<int>& x) {
    Rank r = 0;
    for (std::size_t d = 0; d < dims.size(); ++d) r = r * dims[d] + x[d];
    return r;
  };
  for (std::size_t d = 0; d < dims.size(); ++d) {
    while (at[d] != end[d]) {
      const Rank before = rank_at(at);
      at[d] += at[d] < end[d] ? 1 : -1;
      way.emplace_back(before, rank_at(at));
    }
  }
  return way;
}

TEST(Mesh, LoadsOfPermutationsAreThoseOfWalksInTheOrderOfDimensions) {
  unsigned seed = 1;
  const auto below = [&seed](int bound) {
    seed = seed * 1664525U + 1013904223U;
    return static_cast<int>((seed >> 8) % static_cast<unsigned>(bound));
  };
  for (const Case& c : cases()) {
    for (int turn = 0; turn < 5; ++turn) {
      std::vector<Rank> to(static_cast<std::size_t>(c.ranks));
      for (Rank r = 0; r < c.ranks; ++r) to[static_cast<std::size_t>(r)] = r;
      for (int r = c.ranks - 1; r > 0; --r) {
        std::swap(to[static_cast<std::size_t>(r)], to[static_cast<std::size_t>(below(r + 1))]);
      }
      Congestion congestion(routes_of(c));
      std::map<Wire, int> load;
      for (Rank r = 0; r < c.ranks; ++r) {
        const Rank there = to[static_cast<std::size_t>(r)];
        congestion.add(r, there, 1 + r);
        for (const Wire& wire : walk(r, there, c.dims)) load[wire] += 1 + r;
      }
      int most = 0;
      for (Rank r = 0; r < c.ranks; ++r) {
        int busiest = 0;
        for (const Wire& wire : walk(r, to[static_cast<std::size_t>(r)], c.dims)) {
          busiest = std::max(busiest, load.at(wire));
        }
        if (to[static_cast<std::size_t>(r)] == r) continue;
        EXPECT_TRUE(congestion.busiest(r, to[static_cast<std::size_t>(r)], 1 + r) == 2 * busiest)
            << c.name;
        most = std::max(most, busiest);
      }
      EXPECT_TRUE(congestion.traffic().load == 2 * most) << c.name;
    }
  }
}

// Everybody to its mirror image over the middle: half of each row crosses the one wire there. With
// the rings closed half of that goes round the back.
TEST(Mesh, ItsBisectionIsOneWirePerRow) {
  constexpr int kRows = 3;
  for (const int n : {4, 8, 12}) {
    for (const WiringKind kind : {WiringKind::mesh, WiringKind::torus}) {
      const auto routes = Routes::make({.kind = kind, .dims = {n, kRows}}, n * kRows);
      ASSERT_TRUE(routes.ok());
      Congestion congestion(*routes);
      for (Rank x = 0; x < n; ++x) {
        for (Rank y = 0; y < kRows; ++y) {
          congestion.add(x * kRows + y, (n - 1 - x) * kRows + y, 5);
        }
      }
      EXPECT_EQ(congestion.traffic().congestion(), kind == WiringKind::mesh ? n / 2 : n / 4);
      EXPECT_EQ(congestion.traffic().hops, kind == WiringKind::mesh ? n - 1 : n / 2 - 1);
    }
  }
}

// Every pair of neighbours' own link: half of all ranks are on either side, and each sends over it
// to a half of the ranks whose later dimensions are yet to be crossed.
TEST(Hypercube, AllToAllLoadsEveryLinkAlike) {
  for (const int n : {2, 4, 16, 64}) {
    Congestion congestion(*Routes::make({.kind = WiringKind::hypercube}, n));
    for (Rank a = 0; a < n; ++a) {
      for (Rank b = 0; b < n; ++b) congestion.add(a, b, 3);
    }
    for (Rank r = 0; r < n; ++r) {
      for (int bit = 1; bit < n; bit *= 2) {
        EXPECT_TRUE(congestion.busiest(r, r ^ bit, 3) == 2 * 3 * n / 2) << n;
      }
    }
    EXPECT_TRUE(congestion.traffic().load == 2 * 3 * n / 2);
  }
}

TEST(Degree, IsTheLinksOutOfARank) {
  for (const Case& c : cases()) {
    int most = 1;
    for (Rank a = 0; a < c.ranks; ++a) {
      int links = 0;
      for (Rank b = 0; b < c.ranks; ++b) links += c.wired(a, b) ? 1 : 0;
      most = std::max(most, links);
    }
    EXPECT_EQ(routes_of(c).degree(), most) << c.name;
  }
  EXPECT_EQ(Routes::make({.kind = WiringKind::ring}, 2)->degree(), 2) << "two wires";
  EXPECT_EQ(Routes::make({.kind = WiringKind::torus, .dims = {2, 5}}, 10)->degree(), 4);
  EXPECT_EQ(Routes::make({}, 4)->degree(), 0);
  EXPECT_EQ(Routes::make({.kind = WiringKind::two_level, .group = 2}, 4)->degree(), 0);
}

TEST(Hypercube, NeedsAPowerOfTwo) {
  for (const int n : {3, 12, 16383}) {
    EXPECT_EQ(Routes::make({.kind = WiringKind::hypercube}, n).status().text(),
              "ranks is " + std::to_string(n) + "; hypercube wiring needs a power of two");
  }
  EXPECT_EQ(Routes::make({.kind = WiringKind::hypercube}, Routes::kMostRanks)->degree(), 20);
}

TEST(Mesh, SaysWhatDimsItNeeds) {
  const auto refusal = [](const Dims& dims, int ranks) {
    return Routes::make({.kind = WiringKind::mesh, .dims = dims}, ranks).status().text();
  };
  EXPECT_EQ(refusal({3, 5}, 16), "dims is 3x5; the sizes must multiply to the number of ranks, 16");
  EXPECT_EQ(refusal({}, 4), "dims has 0 sizes; a mesh has 1 to 14");
}

}  // namespace
}  // namespace rankine
