#include "algorithms/schedule/stating_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace rankine {
namespace {

int busiest(int p, const std::vector<Edge>& edges) {
  std::vector<int> sends(static_cast<std::size_t>(p), 0), receives = sends;
  for (const Edge& edge : edges) {
    ++sends[static_cast<std::size_t>(edge.from)];
    ++receives[static_cast<std::size_t>(edge.to)];
  }
  return std::max(*std::max_element(sends.begin(), sends.end()),
                  *std::max_element(receives.begin(), receives.end()));
}

void expect_colours(int p, const std::vector<Edge>& edges) {
  const std::vector<int> colours = edge_colours(p, edges);
  ASSERT_EQ(colours.size(), edges.size());
  std::set<std::pair<Rank, int>> senders, receivers;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    EXPECT_GE(colours[i], 0);
    EXPECT_LT(colours[i], busiest(p, edges));
    EXPECT_TRUE(senders.insert({edges[i].from, colours[i]}).second);
    EXPECT_TRUE(receivers.insert({edges[i].to, colours[i]}).second);
  }
}

TEST(EdgeColours, AreAsManyAsTheBusiestRankHasMessages) {
  expect_colours(3, {{0, 1}, {0, 2}, {1, 0}, {1, 2}, {2, 0}, {2, 1}});
  expect_colours(2, {{0, 1}, {0, 1}, {0, 1}});  // several between the same two
  // First come, first served would want three: 0-0 and 1-1 take one colour, 0-1 another, and 1-0
  // has neither free at both ends.
  expect_colours(3, {{0, 0}, {1, 1}, {0, 1}, {1, 2}, {2, 0}, {2, 2}});
  std::mt19937 random(7);
  for (int trial = 0; trial < 500; ++trial) {
    const auto p = 2 + random() % 9;
    std::vector<Edge> edges(1 + random() % 40);
    for (Edge& edge : edges) {
      edge = {static_cast<Rank>(random() % p), static_cast<Rank>(random() % p)};
    }
    expect_colours(static_cast<int>(p), edges);
  }
}

// What a rank takes is by its own edges: 262,144 leaves below 512 leaders, of which each has 511.
TEST(EdgeColours, ManyLeavesOfFewLeaders) {
  constexpr int kLeaders = 512, kGroup = 512;
  std::vector<Edge> edges;
  for (Rank leader = 0; leader < kLeaders * kGroup; leader += kGroup) {
    for (int i = 1; i < kGroup; ++i) edges.push_back({leader, leader + i});
  }
  const std::vector<int> colours = edge_colours(kLeaders * kGroup, edges);
  for (std::size_t i = 0; i < edges.size(); ++i) {
    ASSERT_EQ(colours[i], edges[i].to - edges[i].from - 1);  // the least that is free
  }
}

// Colours that a path has changed leave the least free where it is.
TEST(EdgeColours, LeastThatIsFreeAtBothEnds) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 300; ++trial) {
    const auto p = 2 + random() % 5;
    std::vector<Edge> edges(1 + random() % 12);
    for (Edge& edge : edges) {
      edge = {static_cast<Rank>(random() % p), static_cast<Rank>(random() % p)};
    }
    const std::vector<int> before =
        edge_colours(static_cast<int>(p), std::vector<Edge>(edges.begin(), edges.end() - 1));
    const std::vector<int> colours = edge_colours(static_cast<int>(p), edges);
    if (!std::equal(before.begin(), before.end(), colours.begin())) continue;  // a path has
    std::set<int> taken;
    for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
      if (edges[i].from == edges.back().from || edges[i].to == edges.back().to) {
        taken.insert(colours[i]);
      }
    }
    int least = 0;
    while (taken.count(least) > 0) ++least;
    EXPECT_EQ(colours.back(), least);
  }
}

// The order is of the transfers of each round; nothing is lost, and the longest come first.
TEST(EdgeColours, ScheduleKeepsItsTransfers) {
  const Schedule stated{3, 4, 1, [](int, Send send) {
                          send(0, 1, block(0), copy);
                          send(0, 2, blocks(0, 2), copy);
                          send(1, 2, block(1), copy);
                          send(1, 0, block(1), copy);
                        }};
  std::vector<std::pair<Rank, Rank>> order;
  for_each_transfer(coloured(stated), 0,
                    [&](const Transfer& t) { order.emplace_back(t.from.front(), t.to.front()); });
  EXPECT_EQ(order, (std::vector<std::pair<Rank, Rank>>{{0, 2}, {0, 1}, {1, 2}, {1, 0}}));
}

// A switch's transfer has no two ends: its round stays as it is.
TEST(EdgeColours, SwitchesAreLeftAlone) {
  const Schedule stated{3, 3, 1, [](int, Send send) {
                          send(0, 1, block(0), copy);
                          send(1, ranks_from(2, 2), blocks(0, 3), copy);
                        }};
  int seen = 0;
  for_each_transfer(coloured(stated), 0,
                    [&](const Transfer& t) { EXPECT_EQ(t.from.front(), seen++); });
  EXPECT_EQ(seen, 2);
}

}  // namespace
}  // namespace rankine
