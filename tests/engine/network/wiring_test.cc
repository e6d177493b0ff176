// Tests of routes and loads on rings, tori, two levels, meshes, hypercubes and fat trees.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithms/torus.h"
#include "engine/network/prices.h"
#include "engine/network/wiring.h"

// Tori and rings, compared with an oracle that knows only the wires between ranks: breadth-first
// search.

namespace rankine {
namespace {

using Dims = std::vector<int>;

const std::vector<Dims> kTori = {{1},       {2},          {3},       {4},    {5},    {7},
                                 {8},       {2, 3},       {3, 5},    {4, 4}, {6, 2}, {2, 2},
                                 {4, 6},    {3, 3, 3},    {2, 2, 5}, {2, 5}, {5, 2}, {4, 4, 4},
                                 {2, 3, 4}, {2, 2, 2, 2}, {3, 4, 5}};

int product(const Dims& dims) {
  int n = 1;
  for (const int size : dims) n *= size;
  return n;
}

std::vector<int> coordinates(Rank r, const Dims& dims) {
  std::vector<int> at(dims.size());
  for (std::size_t d = dims.size(); d-- > 0; r /= dims[d]) at[d] = r % dims[d];
  return at;
}

Rank rank_at(const std::vector<int>& at, const Dims& dims) {
  Rank r = 0;
  for (std::size_t d = 0; d < dims.size(); ++d) r = r * dims[d] + at[d];
  return r;
}

struct Neighbour {
  Rank rank;
  std::size_t dim;
  bool up;
};

// Neighbours in both directions of every dimension, or up only; a dimension of one rank has no
// wires.
std::vector<Neighbour> neighbours(Rank r, const Dims& dims, Routing routing) {
  std::vector<Neighbour> out;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    for (const int way : {1, -1}) {
      if (dims[d] == 1 || (way < 0 && routing == Routing::one_way)) continue;
      auto at = coordinates(r, dims);
      at[d] = (at[d] + way + dims[d]) % dims[d];
      out.push_back({rank_at(at, dims), d, way > 0});
    }
  }
  return out;
}

std::vector<int> distances(Rank from, const Dims& dims, Routing routing) {
  std::vector<int> distance(static_cast<std::size_t>(product(dims)), -1);
  std::queue<Rank> next;
  distance[static_cast<std::size_t>(from)] = 0;
  next.push(from);
  for (; !next.empty(); next.pop()) {
    for (const Neighbour& n : neighbours(next.front(), dims, routing)) {
      int& there = distance[static_cast<std::size_t>(n.rank)];
      if (there >= 0) continue;
      there = distance[static_cast<std::size_t>(next.front())] + 1;
      next.push(n.rank);
    }
  }
  return distance;
}

// The ends of every link, found from messages between neighbours. On rings with more than two ranks
// only one direction is the shortest. On rings of two both are: the link up is visited first.
std::map<int, std::pair<Rank, Neighbour>> links_of(const Routes& routes, const Dims& dims) {
  std::map<int, std::pair<Rank, Neighbour>> ends;
  for (Rank r = 0; r < routes.ranks(); ++r) {
    for (const Neighbour& n : neighbours(r, dims, Routing::minimal)) {
      std::vector<int> seen;
      routes.for_each_link(r, n.rank, [&](int link, int) { seen.push_back(link); });
      const bool tie = dims[n.dim] == 2;
      EXPECT_EQ(seen.size(), tie ? 2U : 1U);
      if (seen.size() != (tie ? 2U : 1U)) continue;
      const auto [at, fresh] = ends.emplace(tie && !n.up ? seen[1] : seen[0], std::pair{r, n});
      EXPECT_TRUE(fresh) << "link " << at->first << " joins two pairs of neighbours";
    }
  }
  return ends;
}

Routes torus(const Dims& dims, Routing routing = Routing::minimal) {
  const auto routes =
      Routes::make({.kind = WiringKind::torus, .dims = dims, .routing = routing}, product(dims));
  EXPECT_TRUE(routes.ok()) << routes.status().text();
  return *routes;
}

TEST(Torus, HopsAreTheShortestWay) {
  for (const Routing routing : {Routing::minimal, Routing::one_way}) {
    for (const Dims& dims : kTori) {
      const Routes routes = torus(dims, routing);
      for (Rank a = 0; a < routes.ranks(); ++a) {
        const std::vector<int> distance = distances(a, dims, routing);
        for (Rank b = 0; b < routes.ranks(); ++b) {
          EXPECT_EQ(routes.hops(a, b), distance[static_cast<std::size_t>(b)])
              << dims_text(dims) << " " << name_of(routing) << ": " << a << " to " << b;
        }
      }
    }
  }
}

TEST(Torus, EveryLinkJoinsNeighboursAndHasItsNumber) {
  for (const Dims& dims : kTori) {
    const Routes routes = torus(dims);
    EXPECT_EQ(routes.links(), 2 * routes.ranks() * static_cast<int>(dims.size()));
    const auto ends = links_of(routes, dims);
    std::size_t wired = 0;
    for (Rank r = 0; r < routes.ranks(); ++r) {
      wired += neighbours(r, dims, Routing::minimal).size();
    }
    EXPECT_EQ(ends.size(), wired) << dims_text(dims);
    for (const auto& [link, end] : ends) {
      EXPECT_LE(0, link);
      EXPECT_LT(link, routes.links());
    }
  }
}

// A message enters a rank as often as it leaves it, except at the ends; the whole message leaves
// `from` and reaches `to`. So its links form ways between the ends. Their number is the least that
// conserves the message (halves times links is 2 * hops), so the ways are the shortest ones.
TEST(Torus, LinksCarryTheWholeMessageTheShortestWay) {
  for (const Dims& dims : kTori) {
    const auto ends = links_of(torus(dims), dims);
    for (const Routing routing : {Routing::minimal, Routing::one_way}) {
      const Routes routes = torus(dims, routing);
      for (Rank a = 0; a < routes.ranks(); ++a) {
        for (Rank b = 0; b < routes.ranks(); ++b) {
          std::map<Rank, int> leaves;
          std::map<int, int> carried;
          int crossed = 0;
          routes.for_each_link(a, b, [&](int link, int halves) {
            ASSERT_EQ(ends.count(link), 1U) << "no neighbours at the ends of link " << link;
            EXPECT_TRUE(halves == 1 || halves == 2);
            const auto& [tail, head] = ends.at(link);
            EXPECT_TRUE(head.up || routing == Routing::minimal);
            leaves[tail] += halves;
            leaves[head.rank] -= halves;
            crossed += halves;
            EXPECT_EQ(carried[link], 0) << "visited twice";
            carried[link] = halves;
          });
          const std::string what = dims_text(dims) + " " + std::string(name_of(routing)) + ": " +
                                   std::to_string(a) + " to " + std::to_string(b);
          EXPECT_EQ(crossed, 2 * routes.hops(a, b)) << what;
          for (const auto& [r, halves] : leaves) {
            EXPECT_EQ(halves, a == b ? 0 : r == a ? 2 : r == b ? -2 : 0) << what << ", at " << r;
          }
        }
      }
    }
  }
}

// Dimension by dimension: a message crosses dimension 0 first, in its sender's row, and crosses
// later dimensions only after it has its destination's earlier coordinates.
TEST(Torus, DimensionsAreCrossedInOrderAndTiesAreSplit) {
  for (const Dims& dims : kTori) {
    const Routes routes = torus(dims);
    const auto ends = links_of(routes, dims);
    for (Rank a = 0; a < routes.ranks(); ++a) {
      for (Rank b = 0; b < routes.ranks(); ++b) {
        const auto from = coordinates(a, dims), to = coordinates(b, dims);
        routes.for_each_link(a, b, [&](int link, int halves) {
          const auto& [tail, head] = ends.at(link);
          const auto at = coordinates(tail, dims);
          for (std::size_t d = 0; d < dims.size(); ++d) {
            if (d < head.dim) {
              EXPECT_EQ(at[d], to[d]);
            } else if (d > head.dim) {
              EXPECT_EQ(at[d], from[d]);
            }
          }
          const int gap = std::abs(from[head.dim] - to[head.dim]);
          EXPECT_EQ(halves, 2 * gap == dims[head.dim] ? 1 : 2);
        });
      }
    }
  }
}

TEST(Ring, IsATorusOfOneDimension) {
  for (const Routing routing : {Routing::minimal, Routing::one_way}) {
    for (const int n : {1, 2, 5, 6}) {
      const auto ring = Routes::make({.kind = WiringKind::ring, .routing = routing}, n);
      ASSERT_TRUE(ring.ok());
      const Routes same = torus({n}, routing);
      EXPECT_EQ(ring->links(), same.links());
      for (Rank a = 0; a < n; ++a) {
        for (Rank b = 0; b < n; ++b) {
          EXPECT_EQ(ring->hops(a, b), same.hops(a, b));
          std::vector<std::pair<int, int>> left, right;
          ring->for_each_link(a, b, [&](int link, int h) { left.emplace_back(link, h); });
          same.for_each_link(a, b, [&](int link, int h) { right.emplace_back(link, h); });
          EXPECT_EQ(left, right);
        }
      }
    }
  }
}

TEST(TwoLevel, FarMessagesTakeTheirGroupsLinks) {
  constexpr int kRanks = 11, kGroup = 4;  // the last group has three
  const auto routes = Routes::make({.kind = WiringKind::two_level, .group = kGroup}, kRanks);
  ASSERT_TRUE(routes.ok());
  EXPECT_EQ(routes->links(), 6);
  std::map<int, std::pair<char, int>> role;  // of each link: direction ('u' or 'd'), group
  for (Rank a = 0; a < kRanks; ++a) {
    for (Rank b = 0; b < kRanks; ++b) {
      std::vector<int> links;
      routes->for_each_link(a, b, [&](int link, int halves) {
        EXPECT_EQ(halves, 2);
        EXPECT_LT(link, routes->links());
        links.push_back(link);
      });
      if (a / kGroup == b / kGroup) {
        EXPECT_TRUE(links.empty());
        EXPECT_EQ(routes->hops(a, b), a == b ? 0 : 1);
        continue;
      }
      EXPECT_EQ(routes->hops(a, b), 2);
      ASSERT_EQ(links.size(), 2U);
      const std::pair up{'u', a / kGroup}, down{'d', b / kGroup};
      EXPECT_EQ(role.emplace(links[0], up).first->second, up);
      EXPECT_EQ(role.emplace(links[1], down).first->second, down);
    }
  }
  EXPECT_EQ(role.size(), 6U);
}

TEST(Full, SharesNothing) {
  const auto routes = Routes::make({}, 5);
  ASSERT_TRUE(routes.ok());
  EXPECT_EQ(routes->links(), 0);
  routes->for_each_link(1, 3, [](int, int) { ADD_FAILURE(); });
  EXPECT_EQ(routes->hops(1, 3), 1);
  EXPECT_EQ(routes->hops(3, 3), 0);
  EXPECT_FALSE(Wiring{}.shares_links());
  for (const std::string_view name : wiring_names()) {
    const Wiring wiring{.kind = *parse_wiring(name)};
    EXPECT_EQ(wiring.shares_links(), name != "full");
    EXPECT_EQ(wiring.has_leaves(), name == "two_level" || name == "fat_tree");
    EXPECT_EQ(wiring.is_grid(), wiring.shares_links() && !wiring.has_leaves());
  }
}

TEST(Routes, SayWhatIsNeeded) {
  const auto refusal = [](const Wiring& wiring, int ranks) {
    const auto routes = Routes::make(wiring, ranks);
    EXPECT_EQ(routes.status().code(), Code::invalid_argument);
    return routes.status().text();
  };
  EXPECT_TRUE(refusal({.kind = WiringKind::torus, .dims = {3, 5}}, 16).starts_with("dims is 3x5"));
  EXPECT_TRUE(refusal({.kind = WiringKind::torus, .dims = {4, 0}}, 4).starts_with("dims is 4x0"));
  EXPECT_TRUE(refusal({.kind = WiringKind::torus, .dims = {1, 5}}, 5).starts_with("dims is 1x5"));
  EXPECT_EQ(refusal({.kind = WiringKind::torus}, 4),
            "dims has 0 sizes; allowed for a torus are 1 to 14");
  EXPECT_EQ(refusal({.kind = WiringKind::torus, .dims = Dims(15, 1)}, 1),
            "dims has 15 sizes; allowed for a torus are 1 to 14");
  EXPECT_TRUE(refusal({.kind = WiringKind::two_level}, 4).starts_with("group is 0"));
  EXPECT_TRUE(refusal({}, 0).starts_with("ranks is 0"));
}

TEST(Wiring, NamesReadBack) {
  EXPECT_EQ(wiring_names().size(), 7U);
  for (const std::string_view name : wiring_names()) EXPECT_EQ(name_of(*parse_wiring(name)), name);
  EXPECT_EQ(routing_names().size(), 2U);
  for (const std::string_view name : routing_names()) {
    EXPECT_EQ(name_of(*parse_routing(name)), name);
  }
  EXPECT_FALSE(parse_wiring("star"));
  EXPECT_FALSE(parse_routing("adaptive"));
}

TEST(Dims, ReadAndRefuse) {
  EXPECT_EQ(*parse_dims("--dims", "4x4"), (Dims{4, 4}));
  EXPECT_EQ(*parse_dims("--dims", "3x3x3"), (Dims{3, 3, 3}));
  EXPECT_EQ(*parse_dims("--dims", "16"), Dims{16});
  for (const char* text : {"", "x", "4x", "x4", "4x0", "-2x2", "4 x 4", "4x4,", "4X4",
                           "99999999999", "1x1x1x1x1x1x1x1x1x1x1x1x1x1x1"}) {
    EXPECT_EQ(parse_dims("--dims", text).status().text(),
              "--dims is '" + std::string(text) +
                  "'; allowed are up to 14 sizes of 1 and more, such as 4x4 and 3x3x3");
  }
}

}  // namespace

// Meshes and hypercubes, compared with an oracle that knows only the wires between ranks:
// breadth-first search for lengths, and walks along the dimensions for loads.

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

// Neighbours on a grid without wrap-around wires: one coordinate differs, by one.
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

// Every rank sends to its mirror image across the middle: half of each row crosses the one wire
// there. On closed rings half of that goes round the back.
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

// n / 2 messages cross each link: the sender may have any coordinates in the dimensions crossed
// before, and the receiver any in the dimensions crossed later.
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
    EXPECT_EQ(
        Routes::make({.kind = WiringKind::hypercube}, n).status().text(),
        "ranks is " + std::to_string(n) + "; allowed with hypercube wiring are powers of two");
  }
  EXPECT_EQ(Routes::make({.kind = WiringKind::hypercube}, Routes::kMostRanks)->degree(), 20);
}

TEST(Mesh, SaysWhatDimsItNeeds) {
  const auto refusal = [](const Dims& dims, int ranks) {
    return Routes::make({.kind = WiringKind::mesh, .dims = dims}, ranks).status().text();
  };
  EXPECT_TRUE(refusal({3, 5}, 16).starts_with("dims is 3x5"));
  EXPECT_EQ(refusal({}, 4), "dims has 0 sizes; allowed for a mesh are 1 to 14");
}

}  // namespace

// Fat trees: the links of messages, compared with a second statement of the rule; and patterns with
// known congestion.

namespace {

using Visits = std::vector<std::pair<int, int>>;

Routes routes_of(int ranks, int group, int spines) {
  const auto routes =
      Routes::make({.kind = WiringKind::fat_tree, .group = group, .spines = spines}, ranks);
  EXPECT_TRUE(routes.ok()) << routes.status().text();
  return *routes;
}

Visits visits(const Routes& routes, Rank a, Rank b) {
  Visits out;
  routes.for_each_link(a, b, [&](int link, int halves) { out.emplace_back(link, halves); });
  return out;
}

// A link's role: up from a leaf or down to it, the leaf, and the spine.
using Role = std::tuple<char, int, int>;

TEST(FatTree, GoesUpAndDownOverTheSpineOfTheDestination) {
  for (const auto& [ranks, group, spines] :
       {std::tuple{12, 4, 4}, {11, 4, 3}, {16, 2, 5}, {9, 3, 1}, {5, 8, 2}}) {
    const Routes routes = routes_of(ranks, group, spines);
    const int leaves = (ranks + group - 1) / group;
    EXPECT_EQ(routes.links(), 2 * leaves * spines);
    std::map<int, Role> roles;
    for (Rank a = 0; a < ranks; ++a) {
      for (Rank b = 0; b < ranks; ++b) {
        const Visits links = visits(routes, a, b);
        if (a / group == b / group) {
          EXPECT_TRUE(links.empty());
          EXPECT_EQ(routes.hops(a, b), a == b ? 0 : 1);
          continue;
        }
        EXPECT_EQ(routes.hops(a, b), 2);
        ASSERT_EQ(links.size(), 2U);
        const Role wanted[] = {{'u', a / group, b % spines}, {'d', b / group, b % spines}};
        for (std::size_t i = 0; i < 2; ++i) {
          const auto [link, halves] = links[i];
          EXPECT_EQ(halves, 2);
          EXPECT_TRUE(0 <= link && link < routes.links());
          EXPECT_EQ(roles.emplace(link, wanted[i]).first->second, wanted[i]);
        }
      }
    }
    std::vector<Role> seen;
    for (const auto& [link, role] : roles) seen.push_back(role);
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end()) << "two links in one role";
  }
}

TEST(TwoLevel, IsAFatTreeOfOneSpine) {
  for (const auto& [ranks, group] : {std::pair{12, 4}, {11, 4}, {3, 8}}) {
    const Routes one = routes_of(ranks, group, 1);
    const auto two_level = Routes::make({.kind = WiringKind::two_level, .group = group}, ranks);
    ASSERT_TRUE(two_level.ok());
    EXPECT_EQ(two_level->links(), one.links());
    for (Rank a = 0; a < ranks; ++a) {
      for (Rank b = 0; b < ranks; ++b) {
        EXPECT_EQ(visits(*two_level, a, b), visits(one, a, b));
        EXPECT_EQ(two_level->hops(a, b), one.hops(a, b));
      }
    }
  }
}

// Zahavi: with as many links up as down, no shift permutation has two messages on one link.
TEST(FatTree, ShiftsAreFreeOfConflictsWithAsManySpinesAsRanksPerLeaf) {
  for (const auto& [ranks, group] : {std::pair{12, 4}, {32, 8}, {9, 3}, {10, 1}}) {
    Congestion congestion(routes_of(ranks, group, group));
    for (int by = 1; by < ranks; ++by) {
      congestion.clear();
      for (Rank r = 0; r < ranks; ++r) congestion.add(r, (r + by) % ranks, 7);
      EXPECT_EQ(congestion.traffic().congestion(), 1) << ranks << " " << group << " " << by;
    }
  }
}

// A shift by whole leaves takes all of a leaf's messages out of it, over all spines.
TEST(FatTree, FewerSpinesAreSharedEvenly) {
  constexpr int kRanks = 32, kGroup = 8;
  for (const int spines : {1, 2, 4, 8}) {
    Congestion congestion(routes_of(kRanks, kGroup, spines));
    for (Rank r = 0; r < kRanks; ++r) congestion.add(r, (r + kGroup) % kRanks, 7);
    EXPECT_EQ(congestion.traffic().congestion(), kGroup / spines);
  }
}

// Routing is by destination: all messages to one rank come down one link, for any number of spines.
TEST(FatTree, OneDestinationHasOneLinkDown) {
  constexpr int kRanks = 12, kGroup = 4;
  Congestion congestion(routes_of(kRanks, kGroup, 4));
  for (Rank r = 1; r < kRanks; ++r) congestion.add(r, 0, 2);
  EXPECT_TRUE(congestion.busiest(5, 0, 2) == 2 * 2 * (kRanks - kGroup));
  EXPECT_TRUE(congestion.busiest(1, 0, 2) == 2 * 2) << "inside the leaf nothing is shared";
}

TEST(FatTree, SaysWhatItNeeds) {
  const auto refusal = [](const Wiring& wiring) { return Routes::make(wiring, 8).status().text(); };
  using enum WiringKind;
  EXPECT_TRUE(refusal({.kind = fat_tree, .spines = 2}).starts_with("group is 0"));
  EXPECT_TRUE(refusal({.kind = fat_tree, .group = 4}).starts_with("spines is 0"));
  EXPECT_TRUE(refusal({.kind = fat_tree, .group = 4, .spines = -1}).starts_with("spines is -1"));
  EXPECT_TRUE(refusal({.kind = fat_tree, .group = 4, .spines = 513}).starts_with("spines is 513"));
}

}  // namespace
}  // namespace rankine
