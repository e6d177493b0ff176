#include "numa/placement.h"

#include <gtest/gtest.h>

#include <string>

namespace rankine {
namespace {

std::vector<int> levels(const std::string& machine, int ranks, const std::string& policy = "") {
  const TopologyResult topology = Topology::synthetic(machine);
  EXPECT_EQ(topology.error, "");
  const PolicyResult parsed = parse_placement_policy(policy);
  EXPECT_EQ(parsed.error, "");
  return level_groups(*topology.topology, place_ranks(*topology.topology, ranks, parsed.policy));
}

using Sizes = std::vector<int>;
constexpr const char* kServer = "pack:2 numa:4 l3:2 core:4 pu:2";

TEST(LevelGroups, AreThoseOfTheMachine) {
  EXPECT_EQ(levels(kServer, 64), (Sizes{4, 8, 32}));
  EXPECT_EQ(levels("pack:2 [numa] l3:4 core:8 pu:1", 64), (Sizes{8, 32}));  // node is package
  EXPECT_EQ(levels("numa:8 core:8 pu:1", 64), (Sizes{8}));                  // no L3: the node's
}

TEST(LevelGroups, TheLastGroupMayHaveFewer) {
  EXPECT_EQ(levels(kServer, 35), (Sizes{4, 8, 32}));
  EXPECT_EQ(levels(kServer, 12), (Sizes{4, 8}));
  EXPECT_EQ(levels(kServer, 6), (Sizes{4}));
  EXPECT_EQ(levels(kServer, 4), Sizes{});  // all in one group
  EXPECT_EQ(levels("core:2 pu:1", 2), Sizes{});
  EXPECT_EQ(levels("pu:1", 1), Sizes{});
}

TEST(LevelGroups, OnlyNeighboursMakeAGroup) {
  EXPECT_EQ(levels(kServer, 64, "scatter"), Sizes{});
  EXPECT_EQ(levels(kServer, 8, "one_per_node"), (Sizes{4}));           // four nodes make a package
  EXPECT_EQ(levels("pack:2 core:4 pu:1", 6, "0,1,4,5,2,3"), Sizes{});  // comes back to the first
  EXPECT_EQ(levels("pack:2 core:4 pu:1", 5, "0,1,2,4,5"), (Sizes{3}));
  EXPECT_EQ(levels("pack:2 core:4 pu:1", 6, "0,4,5,6,1,2"), Sizes{});  // groups of 1, 3 and 2
  EXPECT_EQ(levels("pack:2 core:4 pu:1", 5, "0,4,5,6,7"), Sizes{});    // groups of 1 and 4
  EXPECT_EQ(levels("pack:2 core:2 pu:1", 8), Sizes{});  // oversubscribed: starts anew
  EXPECT_EQ(levels(kServer, 64, "none"), Sizes{});
}

TEST(LevelGroups, ALevelThatIsUnevenIsLeftOut) {
  // Three ranks in the first L3 and two in the second: only packages are alike.
  EXPECT_EQ(levels("pack:2 l3:2 core:3 pu:1", 8, "0,1,2,3,4,6,7,8"), (Sizes{5}));
  EXPECT_EQ(levels("pack:2 l3:2 core:3 pu:1", 12), (Sizes{3, 6}));
}

}  // namespace
}  // namespace rankine
