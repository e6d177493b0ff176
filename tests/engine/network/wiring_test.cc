// Tests of routes on rings, tori, two levels, meshes, hypercubes and fat trees.

#include <queue>

#include "algorithms/torus.h"
#include "engine/network/prices.h"
#include "engine/network/wiring.h"
#include "tests/testing.h"

// Grids, compared with an oracle that knows only the wires between ranks: breadth-first search.

namespace rankine {
namespace {

using Dims = std::vector<int>;

struct Grid {
  Wiring wiring;
  Dims dims;  // of the oracle: a hypercube has dimensions of two, without a wire back

  bool closed() const { return wiring.has_rings(); }
  int ranks() const {
    int n = 1;
    for (const int size : dims) n *= size;
    return n;
  }
  Routes routes(Routing routing) const {
    Wiring other = wiring;
    other.routing = routing;
    const auto routes = Routes::make(other, ranks());
    EXPECT_TRUE(routes.ok()) << routes.status().text();
    return *routes;
  }
  std::string name(Routing routing) const {
    return std::string(name_of(wiring.kind)) + " " + dims_text(dims) + " " +
           std::string(name_of(routing));
  }
};

const std::vector<Grid>& grids() {
  static const std::vector<Grid> all = [] {
    std::vector<Grid> out;
    for (const Dims& dims : std::vector<Dims>{{1},
                                              {2},
                                              {3},
                                              {4},
                                              {7},
                                              {8},
                                              {2, 3},
                                              {3, 5},
                                              {4, 4},
                                              {6, 2},
                                              {2, 2},
                                              {4, 6},
                                              {3, 3, 3},
                                              {2, 2, 5},
                                              {5, 2},
                                              {2, 3, 4},
                                              {2, 2, 2, 2},
                                              {3, 4, 5}}) {
      out.push_back({{.kind = WiringKind::torus, .dims = dims}, dims});
      out.push_back({{.kind = WiringKind::mesh, .dims = dims}, dims});
      if (dims.size() == 1) out.push_back({{.kind = WiringKind::ring}, dims});
    }
    for (std::size_t bits = 0; bits <= 5; ++bits)
      out.push_back({{.kind = WiringKind::hypercube}, Dims(bits, 2)});
    return out;
  }();
  return all;
}

template <class Visit>
void for_each_grid(const Visit& visit) {
  for (const Grid& grid : grids()) {
    visit(grid, Routing::minimal);
    if (grid.closed()) visit(grid, Routing::one_way);
  }
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
// wires, and only a closed grid has wires round the back.
std::vector<Neighbour> neighbours(Rank r, const Grid& grid, Routing routing) {
  std::vector<Neighbour> out;
  for (std::size_t d = 0; d < grid.dims.size(); ++d) {
    const int size = grid.dims[d];
    for (const int way : {1, -1}) {
      if (size == 1 || (way < 0 && routing == Routing::one_way)) continue;
      auto at = coordinates(r, grid.dims);
      at[d] += way;
      if (!grid.closed() && (at[d] < 0 || at[d] == size)) continue;
      at[d] = (at[d] + size) % size;
      out.push_back({rank_at(at, grid.dims), d, way > 0});
    }
  }
  return out;
}

std::vector<int> distances(Rank from, const Grid& grid, Routing routing) {
  std::vector<int> distance(static_cast<std::size_t>(grid.ranks()), -1);
  std::queue<Rank> next;
  distance[static_cast<std::size_t>(from)] = 0;
  for (next.push(from); !next.empty(); next.pop()) {
    for (const Neighbour& n : neighbours(next.front(), grid, routing)) {
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
std::map<int, std::pair<Rank, Neighbour>> links_of(const Grid& grid) {
  std::map<int, std::pair<Rank, Neighbour>> ends;
  const Routes routes = grid.routes(Routing::minimal);
  for (Rank r = 0; r < routes.ranks(); ++r) {
    for (const Neighbour& n : neighbours(r, grid, Routing::minimal)) {
      std::vector<int> seen;
      routes.for_each_link(r, n.rank, [&](int link, int) { seen.push_back(link); });
      const bool tie = grid.closed() && grid.dims[n.dim] == 2;
      EXPECT_EQ(seen.size(), tie ? 2U : 1U);
      if (seen.size() != (tie ? 2U : 1U)) continue;
      const auto [at, fresh] = ends.emplace(tie && !n.up ? seen[1] : seen[0], std::pair{r, n});
      EXPECT_TRUE(fresh) << "link " << at->first << " joins two pairs of neighbours";
      EXPECT_TRUE(0 <= at->first && at->first < routes.links());
    }
  }
  return ends;
}

TEST(Grids, HopsAreTheShortestWay) {
  for_each_grid([](const Grid& grid, Routing routing) {
    const Routes routes = grid.routes(routing);
    for (Rank a = 0; a < routes.ranks(); ++a) {
      const std::vector<int> distance = distances(a, grid, routing);
      for (Rank b = 0; b < routes.ranks(); ++b) {
        EXPECT_EQ(routes.hops(a, b), distance[static_cast<std::size_t>(b)])
            << grid.name(routing) << ": " << a << " to " << b;
      }
    }
  });
}

// A message enters a rank as often as it leaves it, except at the ends; the whole message leaves
// `from` and reaches `to`. So its links form ways between the ends. Their number is the least that
// conserves the message (halves times links is 2 * hops), so the ways are the shortest ones. A
// message crosses dimension 0 first, in its sender's row, and crosses later dimensions only after
// it has its destination's earlier coordinates. Where both ways round are as long, it is halved.
TEST(Grids, LinksCarryTheWholeMessageDimensionByDimension) {
  for_each_grid([](const Grid& grid, Routing routing) {
    const auto ends = links_of(grid);
    const Routes routes = grid.routes(routing);
    for (Rank a = 0; a < routes.ranks(); ++a) {
      for (Rank b = 0; b < routes.ranks(); ++b) {
        const auto from = coordinates(a, grid.dims), to = coordinates(b, grid.dims);
        std::map<Rank, int> leaves;
        std::map<int, int> carried;
        int crossed = 0;
        routes.for_each_link(a, b, [&](int link, int halves) {
          ASSERT_EQ(ends.count(link), 1U) << "no neighbours at the ends of link " << link;
          const auto& [tail, head] = ends.at(link);
          EXPECT_TRUE(head.up || routing == Routing::minimal);
          leaves[tail] += halves;
          leaves[head.rank] -= halves;
          crossed += halves;
          EXPECT_EQ(carried[link], 0) << "visited twice";
          carried[link] = halves;
          const auto at = coordinates(tail, grid.dims);
          for (std::size_t d = 0; d < at.size(); ++d) {
            if (d == head.dim) continue;
            EXPECT_EQ(at[d], d < head.dim ? to[d] : from[d]);
          }
          const int gap = std::abs(from[head.dim] - to[head.dim]);
          const bool tie =
              routing == Routing::minimal && grid.closed() && 2 * gap == grid.dims[head.dim];
          EXPECT_EQ(halves, tie ? 1 : 2);
        });
        const std::string what =
            grid.name(routing) + ": " + std::to_string(a) + " to " + std::to_string(b);
        EXPECT_EQ(crossed, 2 * routes.hops(a, b)) << what;
        for (const auto& [r, halves] : leaves) {
          EXPECT_EQ(halves, a == b ? 0 : r == a ? 2 : r == b ? -2 : 0) << what << ", at " << r;
        }
      }
    }
  });
}

TEST(Grids, DegreeIsTheLinksOutOfARank) {
  for (const Grid& grid : grids()) {
    if (grid.closed()) continue;
    std::size_t most = 1;
    for (Rank a = 0; a < grid.ranks(); ++a)
      most = std::max(most, neighbours(a, grid, Routing::minimal).size());
    EXPECT_EQ(grid.routes(Routing::minimal).degree(), static_cast<int>(most))
        << grid.name(Routing::minimal);
  }
  EXPECT_EQ(Routes::make({.kind = WiringKind::ring}, 2)->degree(), 2) << "two wires";
  EXPECT_EQ(Routes::make({.kind = WiringKind::torus, .dims = {2, 5}}, 10)->degree(), 4);
  EXPECT_EQ(Routes::make({}, 4)->degree(), 0);
  EXPECT_EQ(Routes::make({.kind = WiringKind::two_level, .group = 2}, 4)->degree(), 0);
  EXPECT_EQ(Routes::make({.kind = WiringKind::hypercube}, Routes::kMostRanks)->degree(), 20);
}

TEST(Full, SharesNothing) {
  const auto routes = Routes::make({}, 5).value();
  EXPECT_EQ(routes.links(), 0);
  routes.for_each_link(1, 3, [](int, int) { ADD_FAILURE(); });
  EXPECT_EQ(routes.hops(1, 3), 1);
  EXPECT_EQ(routes.hops(3, 3), 0);
  EXPECT_FALSE(Wiring{}.shares_links());
  for (const std::string_view name : wiring_names()) {
    const Wiring wiring{.kind = *parse_wiring(name)};
    EXPECT_EQ(wiring.shares_links(), name != "full");
    EXPECT_EQ(wiring.has_leaves(), name == "two_level" || name == "fat_tree");
    EXPECT_EQ(wiring.is_grid(), wiring.shares_links() && !wiring.has_leaves());
  }
}

TEST(Routes, SayWhatIsNeeded) {
  using enum WiringKind;
  // clang-format off
  const std::tuple<Wiring, int, const char*> cases[] = {
      {{.kind = torus, .dims = {3, 5}}, 16, "dims is 3x5; "},
      {{.kind = mesh, .dims = {3, 5}}, 16, "dims is 3x5; "},
      {{.kind = torus, .dims = {4, 0}}, 4, "dims is 4x0; "},
      {{.kind = torus, .dims = {1, 5}}, 5, "dims is 1x5; "},
      {{.kind = torus}, 4, "dims has 0 sizes; "},
      {{.kind = mesh}, 4, "dims has 0 sizes; "},
      {{.kind = torus, .dims = Dims(15, 1)}, 1, "dims has 15 sizes; "},
      {{.kind = two_level}, 4, "group is 0; "},
      {{.kind = fat_tree, .spines = 2}, 8, "group is 0; "},
      {{.kind = fat_tree, .group = 4}, 8, "spines is 0; "},
      {{.kind = fat_tree, .group = 4, .spines = 513}, 8, "spines is 513; "},
      {{.kind = hypercube}, 12, "ranks is 12; "},
      {{}, 0, "ranks is 0; "},
  };
  // clang-format on
  for (const auto& [wiring, ranks, text] : cases) {
    const Status refused = Routes::make(wiring, ranks).status();
    EXPECT_EQ(refused.code(), Code::invalid_argument);
    EXPECT_TRUE(refused.text().starts_with(text)) << refused.text();
  }
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

// Fat trees: the links of messages, compared with a second statement of the rule; and patterns with
// known congestion.

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
    const auto two_level =
        Routes::make({.kind = WiringKind::two_level, .group = group}, ranks).value();
    EXPECT_EQ(two_level.links(), one.links());
    for (Rank a = 0; a < ranks; ++a) {
      for (Rank b = 0; b < ranks; ++b) {
        EXPECT_EQ(visits(two_level, a, b), visits(one, a, b));
        EXPECT_EQ(two_level.hops(a, b), one.hops(a, b));
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

}  // namespace
}  // namespace rankine
