#include "engine/api/mpi/homes.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

namespace rankine {
namespace {

Homes on_nodes(const std::vector<int>& nodes, int threads = 1) {
  std::vector<ProcessHome> processes;
  for (const int node : nodes) processes.push_back({node, threads});
  return Homes(processes);
}

const Algorithm& all_reduce(std::string_view name) {
  return *find_algorithm(Collective::all_reduce, name);
}

TEST(Homes, GroupsAreNodesOfNeighbours) {
  EXPECT_EQ(on_nodes({7, 7, 7}).group(), 0) << "one node is nothing to be told apart";
  EXPECT_EQ(on_nodes({7, 7, 3, 3}).group(), 2);
  EXPECT_EQ(on_nodes({0, 0, 0, 1, 1}).group(), 3) << "the last one may have fewer";
  EXPECT_EQ(on_nodes({0, 0, 1, 1, 1}).group(), 0);
  EXPECT_EQ(on_nodes({0, 1, 0, 1}).group(), 0);
  EXPECT_EQ(on_nodes({0, 1, 2}).group(), 1);
  EXPECT_EQ(on_nodes({0, 1}, 3).group(), 3) << "threads count";
}

TEST(Homes, RanksOfAProcessFollowOneAnother) {
  const Homes homes({{5, 2}, {9, 1}, {5, 3}});
  ASSERT_EQ(homes.ranks(), 6);
  EXPECT_EQ(homes.nodes(), 2);
  EXPECT_EQ(homes.most_threads(), 3);
  EXPECT_EQ(homes.first_of(2), 3);
  EXPECT_EQ(homes[4].process, 2);
  EXPECT_EQ(homes[4].thread, 1);
  EXPECT_EQ(homes.on_node(0), (std::vector<Rank>{0, 1, 3, 4, 5}));
  EXPECT_EQ(homes.in_process(2), (std::vector<Rank>{3, 4, 5}));
  using enum Way;
  EXPECT_EQ(homes.ways_of(0, true),
            (std::vector<Way>{here, here, wire, scratch, scratch, scratch}));
  EXPECT_EQ(homes.ways_of(3, false), (std::vector<Way>{wire, wire, wire, here, here, here}));
}

TEST(Homes, AlgorithmsTakeNodesWhereCallsSayNothing) {
  const Homes homes = on_nodes({0, 0, 1, 1});
  CallOptions options;
  ASSERT_TRUE(homes.take_nodes(all_reduce("two_level"), options).ok());
  EXPECT_EQ(options.group, 2);
  options = {};
  ASSERT_TRUE(homes.take_nodes(all_reduce("level_tree"), options).ok());
  EXPECT_EQ(std::vector<int>(options.levels.begin(), options.levels.end()), std::vector<int>{2});
  options = {.group = 4};
  ASSERT_TRUE(homes.take_nodes(all_reduce("two_level"), options).ok());
  EXPECT_EQ(options.group, 4);
  options = {};
  ASSERT_TRUE(homes.take_nodes(all_reduce("ring"), options).ok());
  EXPECT_EQ(options.group, 0);
}

TEST(Homes, NodesThatAreNoGroupsAreRefusedByName) {
  CallOptions options;
  const Status uneven = on_nodes({0, 0, 1, 1, 1}).take_nodes(all_reduce("two_level"), options);
  EXPECT_EQ(uneven.code(), Code::invalid_argument);
  EXPECT_NE(uneven.text().find("two_level takes its groups from the nodes"), std::string::npos);
  EXPECT_NE(uneven.text().find("2 nodes with 2 and 3 ranks"), std::string::npos) << uneven.text();
  const Status apart = on_nodes({0, 1, 0}).take_nodes(all_reduce("two_level"), options);
  EXPECT_NE(apart.text().find("2 nodes, ranks on 0, 1 and 0"), std::string::npos) << apart.text();
  options.group = 2;
  EXPECT_TRUE(on_nodes({0, 1, 0}).take_nodes(all_reduce("two_level"), options).ok());
}

TEST(Homes, NodesAreMadeUpInTurns) {
  std::vector<int> nodes;
  for (int p = 0; p < 9; ++p) nodes.push_back(made_up_node({3, 1}, p));
  EXPECT_EQ(nodes, (std::vector<int>{0, 0, 0, 1, 2, 2, 2, 3, 4}));
  setenv("RANKINE_MPI_NODES", "3,1", 1);
  EXPECT_EQ(read_made_up_nodes().value(), (std::vector<int>{3, 1}));
  for (const char* wrong : {"", "0", "2,", "2;3", "-1", "2x"}) {
    setenv("RANKINE_MPI_NODES", wrong, 1);
    EXPECT_NE(read_made_up_nodes().status().text().find("RANKINE_MPI_NODES is '"),
              std::string::npos)
        << wrong;
  }
  unsetenv("RANKINE_MPI_NODES");
  EXPECT_TRUE(read_made_up_nodes().value().empty());
}

}  // namespace
}  // namespace rankine
