// What crosses between groups: every byte once, counted transfer by transfer.
#include "algorithms/hierarchical.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "algorithms/hierarchical.h"
#include "algorithms/levels.h"
#include "algorithms/tree.h"
#include "tests/algorithms/reference.h"

namespace rankine {
namespace {

// How often each block goes from a group into another; groups of `size` neighbours.
struct Crossings {
  std::map<std::pair<int, Block>, int> into, out_of;   // (group, block)
  std::map<std::tuple<int, int, Block>, int> between;  // (from, to, block)
  int all = 0;
};

Crossings crossings(const Schedule& schedule, int size, int first = 0, int last = -1) {
  Crossings out;
  for (int k = first; k < (last < 0 ? schedule.rounds : last); ++k) {
    for_each_transfer(schedule, k, [&](const Transfer& t) {
      const int from = t.from.front() / size, to = t.to.front() / size;
      if (from == to) return;
      t.what.list.for_each([&](Block b) {
        ++out.into[{to, b}];
        ++out.out_of[{from, b}];
        ++out.between[{from, to, b}];
        ++out.all;
      });
    });
  }
  return out;
}

int groups_of(int p, int g) { return (p + g - 1) / g; }

TEST(TwoLevel, AnAllGatherBringsEveryBlockOnceIntoEveryOtherGroup) {
  for (int p = 1; p <= 24; ++p) {
    for (int g = 1; g <= p; ++g) {
      const Crossings c = crossings(two_level_all_gather(p, g), g);
      for (Block b = 0; b < p; ++b) {
        for (int j = 0; j < groups_of(p, g); ++j) {
          const auto found = c.into.find({j, b});
          EXPECT_EQ(found == c.into.end() ? 0 : found->second, j == b / g ? 0 : 1)
              << p << " in groups of " << g << ", block " << b << " into group " << j;
        }
      }
    }
  }
}

TEST(TwoLevel, AReduceScatterTakesOneSumOfEveryBlockOutOfEveryOtherGroup) {
  for (int p = 1; p <= 24; ++p) {
    for (int g = 1; g <= p; ++g) {
      const Crossings c = crossings(two_level_reduce_scatter(p, g), g);
      EXPECT_EQ(c.all, p * (groups_of(p, g) - 1));
      for (const auto& [key, times] : c.between) {
        EXPECT_EQ(times, 1);
        EXPECT_EQ(std::get<1>(key), std::get<2>(key) / g) << "not to the block's own group";
      }
    }
  }
}

// Into a group of n of N ranks come the others' sums of its n blocks, then the results of the rest:
// at two groups one vector each way, which is the least.
TEST(TwoLevel, AnAllReduceCrossesOncePerHalf) {
  for (int p = 2; p <= 24; ++p) {
    for (int g = 1; g < p; ++g) {
      const Schedule s = two_level_all_reduce(p, g);
      const int half = s.rounds / 2, m = groups_of(p, g);
      EXPECT_EQ(crossings(s, g, 0, half).all, p * (m - 1));
      EXPECT_EQ(crossings(s, g, half).all, p * (m - 1));
      if (m != 2) continue;
      const Crossings c = crossings(s, g);
      for (const auto& [key, times] : c.into) EXPECT_EQ(times, 1);
      EXPECT_EQ(c.all, 2 * p);
    }
  }
}

TEST(TwoLevel, ABroadcastEntersAndAReduceLeavesEveryOtherGroupOnce) {
  for (int p = 1; p <= 24; ++p) {
    for (int g = 1; g <= p; ++g) {
      if (p % g != 0) continue;
      for (Rank root : {0, p / 2, p - 1}) {
        const Crossings down = crossings(two_level_broadcast(p, g, root), g);
        const Crossings up = crossings(two_level_reduce(p, g, root), g);
        EXPECT_EQ(down.all, g * (p / g - 1));
        EXPECT_EQ(up.all, g * (p / g - 1));
        for (const auto& [key, times] : down.into) EXPECT_EQ(times, 1);
        for (const auto& [key, times] : up.out_of) EXPECT_EQ(times, 1);
        EXPECT_EQ(down.into.count({root / g, 0}), 0u);
      }
    }
  }
}

// Among leaders the whole vector goes from each to each.
TEST(Leaders, OnlyTheFirstOfAGroupTalksAcross) {
  for (int p = 2; p <= 24; ++p) {
    for (int g = 1; g <= p; ++g) {
      const Schedule s = leaders_all_reduce(p, g);
      const int m = groups_of(p, g);
      EXPECT_EQ(crossings(s, g).all, m * (m - 1));
      for (int k = 0; k < s.rounds; ++k) {
        for_each_transfer(s, k, [&](const Transfer& t) {
          if (t.from.front() / g == t.to.front() / g) return;
          EXPECT_EQ(t.from.front() % g, 0);
          EXPECT_EQ(t.to.front() % g, 0);
        });
      }
    }
  }
}

// At every level of the machine at once.
TEST(LevelTree, TheVectorEntersEveryGroupOfEveryLevelOnce) {
  const std::vector<std::vector<int>> machines = {{}, {1}, {2}, {3}, {4, 16}, {2, 4, 8}, {3, 12}};
  for (const std::vector<int>& levels : machines) {
    for (int p = 1; p <= 40; ++p) {
      if (levels_refusal(levels, p)) continue;
      for (Rank root = 0; root<p; root += p> 9 ? 5 : 1) {
        const Schedule s = tree_broadcast(level_tree(p, root, levels), 0, 1);
        for (const int size : levels) {
          const Crossings c = crossings(s, size);
          EXPECT_EQ(c.all, groups_of(p, size) - 1);
          for (const auto& [key, times] : c.into) EXPECT_EQ(times, 1);
          EXPECT_EQ(c.into.count({root / size, 0}), 0u);
        }
        EXPECT_LE(s.rounds, static_cast<int>(levels.size()) + 1);
      }
    }
  }
}

}  // namespace
}  // namespace rankine
