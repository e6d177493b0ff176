// Routes against an oracle that knows only who is wired to whom: breadth-first search.
#include "engine/network/wiring.h"

#include <gtest/gtest.h>

#include <map>
#include <queue>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/torus.h"

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

// Both ways round in every dimension, or up alone; a dimension of one rank has no wires.
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

// The ends of every link, found from messages between neighbours on a ring long enough that only
// one way is shortest; for the others both ways, told apart by the order of visits: up first.
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

// What enters a rank leaves it, but for the ends; the whole message leaves `from` and reaches `to`.
// So its links are ways from one to the other, and since their number is the least that conserves
// the message (halves times links is 2 * hops), the ways are shortest ones.
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

// Dimension by dimension: the first rank's links in dimension 0 are crossed in its own row, the
// others where the message has its destination's first coordinate already.
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
  std::map<int, std::pair<char, int>> role;  // of each link: up from or down to which group
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
  EXPECT_EQ(refusal({.kind = WiringKind::torus, .dims = {3, 5}}, 16),
            "dims is 3x5; the sizes must multiply to the number of ranks, 16");
  EXPECT_EQ(refusal({.kind = WiringKind::torus, .dims = {4, 0}}, 4),
            "dims is 4x0; every size must be at least 2");
  EXPECT_EQ(refusal({.kind = WiringKind::torus, .dims = {1, 5}}, 5),
            "dims is 1x5; every size must be at least 2");
  EXPECT_EQ(refusal({.kind = WiringKind::torus}, 4), "dims has 0 sizes; a torus has 1 to 14");
  EXPECT_EQ(refusal({.kind = WiringKind::torus, .dims = Dims(15, 1)}, 1),
            "dims has 15 sizes; a torus has 1 to 14");
  EXPECT_EQ(refusal({.kind = WiringKind::two_level}, 4),
            "group is 0; two_level wiring needs 1 or more ranks per group");
  EXPECT_EQ(refusal({}, 0), "ranks is 0; a network has 1 to 1048576");
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
}  // namespace rankine
