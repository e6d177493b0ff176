// Fat trees: who takes which link, against the rule stated once more; and patterns whose congestion
// is known.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/network/prices.h"
#include "engine/network/wiring.h"

namespace rankine {
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

// A link's role: up from or down to which leaf, by which spine.
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

// A shift by whole leaves takes all of a leaf's ranks out of it, over the spines there are.
TEST(FatTree, FewerSpinesAreSharedEvenly) {
  constexpr int kRanks = 32, kGroup = 8;
  for (const int spines : {1, 2, 4, 8}) {
    Congestion congestion(routes_of(kRanks, kGroup, spines));
    for (Rank r = 0; r < kRanks; ++r) congestion.add(r, (r + kGroup) % kRanks, 7);
    EXPECT_EQ(congestion.traffic().congestion(), kGroup / spines);
  }
}

// Routing is by destination: what goes to one rank comes down one link, whatever the spines.
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
  EXPECT_EQ(refusal({.kind = fat_tree, .spines = 2}),
            "group is 0; fat_tree wiring needs 1 or more ranks per group");
  EXPECT_EQ(refusal({.kind = fat_tree, .group = 4}), "spines is 0; fat_tree wiring needs 1 to 512");
  EXPECT_EQ(refusal({.kind = fat_tree, .group = 4, .spines = -1}),
            "spines is -1; fat_tree wiring needs 1 to 512");
  EXPECT_EQ(refusal({.kind = fat_tree, .group = 4, .spines = 513}),
            "spines is 513; fat_tree wiring needs 1 to 512");
}

}  // namespace
}  // namespace rankine
