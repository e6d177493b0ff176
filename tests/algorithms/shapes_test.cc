#include "algorithms/shapes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/levels.h"
#include "algorithms/parameters.h"
#include "algorithms/pat.h"
#include "algorithms/shapes.h"

namespace rankine {
namespace {

constexpr int kMost = 300;

// Every rank reaches `root`, and hears after its parent has heard.
void expect_tree(const Tree& tree, int n, Rank root) {
  ASSERT_EQ(tree.ranks(), n);
  for (Rank r = 0; r < n; ++r) {
    if (r == root) {
      EXPECT_EQ(tree.parent_of(r), kNoParent);
      EXPECT_EQ(tree.when_of(r), -1);
      continue;
    }
    ASSERT_GE(tree.parent_of(r), 0);
    ASSERT_LT(tree.parent_of(r), n);
    EXPECT_GT(tree.when_of(r), tree.when_of(tree.parent_of(r)));
    EXPECT_GE(tree.when_of(r), 0);
  }
}

std::set<Rank> interior(const Tree& tree) {
  std::set<Rank> out(tree.parent.begin(), tree.parent.end());
  out.erase(kNoParent);
  return out;
}

std::set<Rank> interior_in_both(const TreePair& trees) {
  const std::set<Rank> a = interior(trees.first), b = interior(trees.second);
  std::set<Rank> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(both, both.end()));
  return both;
}

std::size_t most_children(const Tree& tree) {
  std::size_t most = 0;
  for (Rank r = 0; r < tree.ranks(); ++r) most = std::max(most, tree.children_of(r).size());
  return most;
}

TEST(Shapes, AreTrees) {
  for (int n = 1; n <= kMost; ++n) {
    SCOPED_TRACE(n);
    expect_tree(binomial_near(n), n, 0);
    expect_tree(binomial_far(n), n, 0);
    expect_tree(star(n), n, 0);
    expect_tree(heap(n), n, 0);
    expect_tree(in_order(n), n, (1 << floor_log2(n)) - 1);
    expect_tree(nccl_trees(n).first, n, 0);
    expect_tree(nccl_trees(n).second, n, n % 2 == 0 ? n - 1 : 1 % n);
    expect_tree(complementary_trees(n).first, n, 0);
    expect_tree(complementary_trees(n).second, n, n - 1);
    expect_tree(topped_trees(n).first, n, 0);
    expect_tree(topped_trees(n).second, n, 0);
    expect_tree(coloured_trees(n).first, n, 0);
    expect_tree(coloured_trees(n).second, n, 0);
  }
}

TEST(Shapes, HaveTheDepthThatTheySay) {
  for (int n = 2; n <= kMost; ++n) {
    SCOPED_TRACE(n);
    EXPECT_EQ(binomial_near(n).rounds(), ceil_log2(n));
    EXPECT_EQ(binomial_far(n).rounds(), ceil_log2(n));
    EXPECT_EQ(star(n).rounds(), n - 1);
    EXPECT_EQ(heap(n).depth(), floor_log2(n));
    EXPECT_EQ(in_order(n).depth(), floor_log2(n));
    EXPECT_EQ(nccl_trees(n).first.depth(), ceil_log2(n));
    EXPECT_EQ(nccl_trees(n).second.depth(), ceil_log2(n));
    EXPECT_EQ(topped_trees(n).first.depth(), 1 + floor_log2(n - 1));
    EXPECT_EQ(by_levels(heap(n).parent), heap(n));
  }
}

TEST(Shapes, BinaryTreesHaveTwoChildrenAtMost) {
  for (int n = 1; n <= kMost; ++n) {
    SCOPED_TRACE(n);
    EXPECT_LE(most_children(heap(n)), 2u);
    EXPECT_LE(most_children(in_order(n)), 2u);
    EXPECT_LE(most_children(nccl_trees(n).first), 2u);
    EXPECT_LE(most_children(nccl_trees(n).second), 2u);
    EXPECT_LE(most_children(complementary_trees(n).second), 2u);
  }
}

// In every round everybody who has it tells k - 1 others, as long as there are some; far first,
// subtrees are neighbours.
TEST(Knomial, EverybodyWhoHasItTellsAsManyAsTheRadixSays) {
  for (int k = 2; k <= 6; ++k) {
    for (int n = 1; n <= kMost; ++n) {
      SCOPED_TRACE(std::to_string(n) + " ranks, radix " + std::to_string(k));
      for (const Tree& tree : {knomial_near(n, k), knomial_far(n, k)}) {
        expect_tree(tree, n, 0);
        EXPECT_EQ(n == 1 ? 0 : tree.rounds(), ceil_log(k, n));
        std::map<std::pair<Rank, int>, int> told;
        for (Rank r = 1; r < n; ++r) {
          const int here = ++told[std::pair(tree.parent_of(r), tree.when_of(r))];
          EXPECT_LE(here, k - 1);
        }
        int have = 1;
        for (int round = 0; round < ceil_log(k, n) && power_of(k, ceil_log(k, n)) == n; ++round) {
          have *= k;
          EXPECT_EQ(1 + std::count_if(tree.when.begin(), tree.when.end(),
                                      [round](int w) { return w >= 0 && w <= round; }),
                    have);
        }
      }
      std::vector<int> last(static_cast<std::size_t>(n)), size(static_cast<std::size_t>(n), 0);
      const Tree far = knomial_far(n, k);
      for (Rank r = 0; r < n; ++r) {
        for (Rank above = r; above != kNoParent; above = far.parent_of(above)) {
          last[static_cast<std::size_t>(above)] = r;
          ++size[static_cast<std::size_t>(above)];
        }
      }
      for (Rank r = 0; r < n; ++r) {
        EXPECT_EQ(last[static_cast<std::size_t>(r)] - r + 1, size[static_cast<std::size_t>(r)]);
      }
    }
  }
}

TEST(Binomial, EverybodyWhoHasItTellsSomebodyInEveryRound) {
  for (int n = 1; n <= kMost; ++n) {
    for (const Tree& tree : {binomial_near(n), binomial_far(n)}) {
      std::vector<int> hear(static_cast<std::size_t>(std::max(1, tree.rounds())));
      std::set<std::pair<Rank, int>> tells;
      for (Rank r = 1; r < n; ++r) {
        ++hear[static_cast<std::size_t>(tree.when_of(r))];
        EXPECT_TRUE(tells.insert({tree.parent_of(r), tree.when_of(r)}).second)
            << "two at once, N=" << n;
      }
      if (is_power_of_two(n)) {
        for (int k = 0; k < tree.rounds(); ++k) {
          EXPECT_EQ(hear[static_cast<std::size_t>(k)], 1 << k);
        }
      }
    }
  }
}

TEST(Binomial, NearAndFarFirst) {
  EXPECT_EQ(binomial_near(8).parent, (std::vector<Rank>{-1, 0, 0, 1, 0, 1, 2, 3}));
  EXPECT_EQ(binomial_near(8).when, (std::vector<int>{-1, 0, 1, 1, 2, 2, 2, 2}));
  EXPECT_EQ(binomial_far(8).parent, (std::vector<Rank>{-1, 0, 0, 2, 0, 4, 4, 6}));
  EXPECT_EQ(binomial_far(8).when, (std::vector<int>{-1, 2, 1, 2, 0, 2, 1, 2}));
}

TEST(InOrder, LeavesAreTheEvenRanks) {
  for (int n = 1; n <= kMost; ++n) {
    for (Rank r : interior(in_order(n))) EXPECT_EQ(r % 2, 1) << n;
  }
  EXPECT_EQ(in_order(6).parent, (std::vector<Rank>{1, 3, 1, -1, 5, 3}));
}

// What is left of a rank hangs below it to the left.
TEST(InOrder, IsASearchTree) {
  for (int n = 1; n <= 100; ++n) {
    const Tree tree = in_order(n);
    for (Rank r = 0; r < n; ++r) {
      for (Rank low = r, up = tree.parent_of(r); up != kNoParent;
           low = up, up = tree.parent_of(up)) {
        EXPECT_EQ(r < up, low < up) << n;
      }
    }
  }
}

// ncclGetDtree, NCCL 2.4 to 2.27, for these numbers of ranks.
TEST(NcclTrees, AreNcclsTrees) {
  EXPECT_EQ(nccl_trees(4).first.parent, (std::vector<Rank>{-1, 2, 0, 2}));
  EXPECT_EQ(nccl_trees(4).second.parent, (std::vector<Rank>{1, 3, 1, -1}));
  EXPECT_EQ(nccl_trees(5).first.parent, (std::vector<Rank>{-1, 2, 4, 2, 0}));
  EXPECT_EQ(nccl_trees(5).second.parent, (std::vector<Rank>{1, -1, 3, 0, 3}));
  EXPECT_EQ(nccl_trees(8).first.parent, (std::vector<Rank>{-1, 2, 4, 2, 0, 6, 4, 6}));
}

TEST(NcclTrees, InteriorsAreDisjointForEvenNumbersOnly) {
  for (int n = 2; n <= kMost; ++n) {
    EXPECT_EQ(interior_in_both(nccl_trees(n)),
              n % 2 == 0 || n == 1 ? std::set<Rank>{} : std::set<Rank>{0})
        << n;
  }
}

TEST(ComplementaryTrees, InteriorsAreDisjointForEveryNumber) {
  for (int n = 1; n <= kMost; ++n) {
    EXPECT_EQ(interior_in_both(complementary_trees(n)), std::set<Rank>{}) << n;
    EXPECT_EQ(static_cast<int>(interior(complementary_trees(n).second).size()), n / 2);
  }
}

TEST(ComplementaryTrees, AreThePapersAtFour) {
  EXPECT_EQ(complementary_trees(4).first.parent, (std::vector<Rank>{-1, 0, 0, 1}));
  EXPECT_EQ(complementary_trees(4).second.parent, (std::vector<Rank>{3, 2, 3, -1}));
}

TEST(ToppedTrees, OnlyTheTopIsInteriorInBoth) {
  for (int n = 2; n <= kMost; ++n) {
    EXPECT_EQ(interior_in_both(topped_trees(n)), std::set<Rank>{0}) << n;
    EXPECT_EQ(interior_in_both(coloured_trees(n)), std::set<Rank>{0}) << n;
    EXPECT_EQ(coloured_trees(n).first.parent, topped_trees(n).first.parent);
    EXPECT_EQ(coloured_trees(n).second.parent, topped_trees(n).second.parent);
  }
}

// Nobody sends twice or receives twice in rounds of the same colour, so segments may follow one
// another every two rounds.
TEST(ColouredTrees, NeedOnePort) {
  for (int n = 2; n <= kMost; ++n) {
    const auto [first, second] = coloured_trees(n);
    std::set<std::pair<Rank, int>> sends, receives;
    for (const Tree& tree : {first, second}) {
      for (Rank r = 1; r < n; ++r) {
        const int colour = tree.when_of(r) % 2;
        EXPECT_TRUE(receives.insert({r, colour}).second) << n << ": " << r;
        EXPECT_TRUE(sends.insert({tree.parent_of(r), colour}).second) << n << ": " << r;
      }
    }
  }
}

TEST(Renamed, IsTheSameTree) {
  const Tree tree = heap(7);
  const Tree turned = renamed(tree, [](Rank r) { return (r + 3) % 7; });
  for (Rank r = 0; r < 7; ++r) {
    EXPECT_EQ(turned.depth_of((r + 3) % 7), tree.depth_of(r));
    EXPECT_EQ(turned.when_of((r + 3) % 7), tree.when_of(r));
  }
}

TEST(DepthFirst, MeetsAParentBeforeItsChildrenAndASubtreeInOneGo) {
  EXPECT_EQ(depth_first(8), (std::vector<int>{4, 6, 7, 5, 2, 3, 1}));
  EXPECT_EQ(depth_first(1), std::vector<int>{});
  for (int d = 1; d <= 256; d *= 2) {
    const std::vector<int> order = depth_first(d);
    std::set<int> seen{0};
    for (std::size_t i = 0; i < order.size(); ++i) {
      const int r = order[i], bit = r & -r;
      EXPECT_TRUE(seen.count(r - bit)) << r;
      EXPECT_TRUE(seen.insert(r).second);
      for (int j = 1; j < bit; ++j) {
        EXPECT_EQ(order[i + static_cast<std::size_t>(j)] & -bit, r) << "not below " << r;
      }
    }
    EXPECT_EQ(static_cast<int>(seen.size()), d);
  }
}

TEST(LevelTree, IsATreeFromAnyRoot) {
  for (int n = 1; n <= 60; ++n) {
    for (const std::vector<int>& levels :
         {std::vector<int>{}, {1}, {2}, {5}, {2, 4}, {3, 6, 24}, {4, 16}}) {
      if (levels_refusal(levels, n)) continue;
      for (Rank root = 0; root < n; ++root) expect_tree(level_tree(n, root, levels), n, root);
    }
  }
}

TEST(LevelTree, OfTwoPackagesWithTwoCachesOfTwoCores) {
  const Tree tree = level_tree(8, 5, {2, 4});
  EXPECT_EQ(tree.parent, (std::vector<Rank>{5, 0, 0, 2, 5, kNoParent, 5, 6}));
  EXPECT_EQ(tree.when, (std::vector<int>{0, 2, 1, 2, 2, -1, 1, 2}));
}

TEST(LevelTree, WithoutLevelsIsToldAtOnce) {
  const Tree tree = level_tree(5, 2, {});
  EXPECT_EQ(tree.rounds(), 1);
  EXPECT_EQ(level_tree(5, 2, {1, 5}), tree);  // levels that change nothing
}

TEST(Levels, AreRefusedWithWhatIsAllowed) {
  EXPECT_EQ(levels_refusal({}, 1), std::nullopt);
  EXPECT_EQ(levels_refusal({2, 4, 8}, 8), std::nullopt);
  for (const std::vector<int>& wrong :
       {std::vector<int>{0}, {-1}, {9}, {4, 2}, {4, 4}, {2, 3}, {2, 16}}) {
    EXPECT_EQ(levels_refusal(wrong, 8), "levels is " + list_text(wrong, ',') +
                                            "; allowed are sizes of groups from 1 to 8, each a "
                                            "multiple of the one before, as in 4,16");
  }
}

}  // namespace
}  // namespace rankine
