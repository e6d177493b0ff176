// Traffic between groups, counted transfer by transfer: every byte crosses once.

#include "algorithms/catalogue.h"
#include "algorithms/hierarchical.h"
#include "algorithms/levels.h"
#include "algorithms/pat.h"
#include "algorithms/torus.h"
#include "algorithms/torus_all_to_all.h"
#include "algorithms/tree.h"
#include "tests/algorithms/reference.h"
#include "tests/testing.h"

namespace rankine {
namespace {

// How often each block goes from one group into another. Groups are `size` neighbouring ranks.
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

// A group of n of N ranks receives the others' sums of its n blocks, then the results of the other
// blocks. With two groups this is one vector each way, which is the minimum.
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

// Each leader sends the whole vector to each other leader.
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

// Any broadcast inside and any all-reduce across make a right all-reduce. Catches parts of one
// algorithm that are numbered otherwise than the other's blocks.
TEST(MultiLeader, TakesAnyInnerAndOuterAlgorithm) {
  const std::vector<std::pair<int, std::vector<int>>> machines = {
      {12, {2, 4}}, {18, {3, 6}}, {10, {5}}, {6, {1}}};
  int pairs = 0;
  for (const Algorithm& inner : catalogue()) {
    if (inner.collective != Collective::broadcast) continue;
    for (const Algorithm& outer : catalogue()) {
      if (outer.collective != Collective::all_reduce || !outer.other_bits.empty()) continue;
      for (const auto& [p, levels] : machines) {
        const Leaders leaders(p, levels);
        const Params of_outer{.ranks = leaders.groups()};
        const auto inside = [&inner](int n, Rank root) {
          return inner.make(inner.only_taken({.ranks = n, .root = root}));
        };
        if (outer.refusal(of_outer) || inner.refusal({.ranks = leaders.group})) continue;
        ++pairs;
        const Schedule s = multi_leader_all_reduce(leaders, inside, outer.make(of_outer));
        EXPECT_EQ(failure(s, {Collective::all_reduce, p, s.blocks}), "")
            << inner.name << ", " << outer.name << ", " << p << " " << levels.front();
      }
    }
  }
  EXPECT_GT(pairs, 1000);
  for (const Algorithm& outer : catalogue()) {
    if (outer.collective != Collective::all_gather) continue;
    for (const auto& [p, levels] : machines) {
      const Leaders leaders(p, levels);
      const Params of_outer{.ranks = leaders.groups()};
      if (outer.refusal(of_outer)) continue;
      const Schedule s = multi_leader_all_gather(leaders, outer.make(of_outer));
      EXPECT_EQ(failure(s, {Collective::all_gather, p, s.blocks}), "") << outer.name << ", " << p;
    }
  }
}

// Between groups only leaders talk, each about its part. Catches a leader at another position.
TEST(MultiLeader, LeadersCarryEqualParts) {
  const auto star = [](int n, Rank root) { return rooted_at(root, direct_broadcast(n)); };
  const Schedule s = multi_leader_all_reduce({24, {2, 8}}, star, ring_all_reduce(3));
  std::map<Rank, int> blocks_of;
  for (int k = 0; k < s.rounds; ++k) {
    for_each_transfer(s, k, [&](const Transfer& t) {
      if (t.from.front() / 8 == t.to.front() / 8) return;
      EXPECT_EQ(t.from.front() % 8, t.to.front() % 8);
      blocks_of[t.from.front()] += t.what.list.size();
    });
  }
  ASSERT_EQ(blocks_of.size(), 12u);
  for (const auto& [leader, sent] : blocks_of) {
    EXPECT_EQ(leader % 2, 0);
    EXPECT_EQ(sent, 2 * (3 - 1));
  }
}

// Groups that begin at any rank of the tree, as with roots other than 0: on average the data of a
// bine tree cross less often than a binomial tree's, at best a third less (the paper's bound).
// Catches a tree of the same rounds with distances of a binomial one.
TEST(Bine, CrossesBetweenGroupsLessThanABinomialTree) {
  for (const auto& [p, group] : {std::pair(32, 4), {64, 8}, {60, 12}, {100, 8}, {128, 16}}) {
    const auto crossed = [p = p, group = group](const Tree& tree) {
      int out = 0;
      for (Rank first = 0; first < group; ++first) {
        for (Rank root = 0; root < p; ++root) {
          const auto group_of = [&](Rank r) { return ((r + root) % p + first) / group; };
          for (Rank r = 1; r < p; ++r) out += group_of(r) != group_of(tree.parent_of(r)) ? 1 : 0;
        }
      }
      return out;
    };
    EXPECT_LT(crossed(bine(p)), crossed(binomial_far(p)));
    EXPECT_GT(3 * crossed(bine(p)), 2 * crossed(binomial_far(p)));
  }
}

// The counts hold at every level of the machine.
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

// Exchanges level by level: the traffic between the groups of a machine.

const std::vector<std::pair<int, std::vector<int>>> kMachines = {
    {1, {1}},     {5, {5}},  {5, {1}},         {6, {2}},      {6, {3}},
    {12, {2, 6}}, {16, {4}}, {24, {2, 4, 12}}, {30, {3, 15}}, {32, {2, 4, 8, 16}},
};

// The messages and blocks that cross from one group of `group` ranks to another.
std::map<std::pair<int, int>, std::pair<int, int>> crossing(const Schedule& s, int group) {
  std::map<std::pair<int, int>, std::pair<int, int>> out;
  for (int k = 0; k < s.rounds; ++k) {
    for_each_transfer(s, k, [&](const Transfer& t) {
      const int from = t.from.front() / group, to = t.to.front() / group;
      if (from == to) return;
      ++out[{from, to}].first;
      out[{from, to}].second += t.what.list.size();
    });
  }
  return out;
}

TEST(LevelExchange, EveryBlockCrossesIntoAGroupOnce) {
  for (const auto& [p, levels] : kMachines) {
    for (const int group : levels) {
      if (group == p) continue;
      std::map<int, int> into;
      for (const auto& [pair, crossed] : crossing(level_exchange_all_gather(p, levels), group)) {
        into[pair.second] += crossed.second;
      }
      for (int j = 0; j < p / group; ++j) EXPECT_EQ(into[j], p - group) << p << " " << group;
    }
  }
}

// Between two groups of the outermost level each member sends one message, with all the data for
// its counterpart's side.
TEST(LevelExchange, AllToAllsSendOneMessagePerMemberAndGroup) {
  const Schedule s = level_exchange_all_to_all(24, {2, 4, 12});
  const auto crossed = crossing(s, 12);
  ASSERT_EQ(crossed.size(), 2u);
  for (const auto& [pair, all] : crossed) EXPECT_EQ(all, std::pair(12, 12 * 12));
  EXPECT_EQ(crossing(level_exchange_all_to_all(24, {24}), 12).at({0, 1}), std::pair(144, 144));
}

// Catches levels in another order: between the largest groups each member sends one vector.
TEST(RecursiveMultiplying, CrossesOncePerMember) {
  for (const auto& [pair, all] : crossing(recursive_multiplying_all_reduce(24, {2, 4, 12}), 12)) {
    EXPECT_EQ(all, std::pair(12, 12));
  }
}

// Catches phases in another order, and groups that are not exchanged as wholes.
TEST(ParLinNa, SendsOneMessagePerMemberAndGroup) {
  for (const int x : {2, 3, 4}) {
    const auto crossed = crossing(parlinna_all_to_all(24, 4, x), 4);
    ASSERT_EQ(crossed.size(), 30u);
    for (const auto& [pair, all] : crossed) EXPECT_EQ(all, std::pair(4, 4 * 4));
  }
}

// Catches a digit in the wrong round: radix 2 is Bruck's algorithm, radix p the pairwise exchange.
TEST(ParLogNa, LeadsFromBruckToPairwiseExchange) {
  for (int p = 2; p <= 20; ++p) {
    EXPECT_EQ(text_of(parlogna_all_to_all(p, 2)), text_of(bruck_all_to_all(p, 2)));
    EXPECT_EQ(text_of(parlogna_all_to_all(p, p)), text_of(pairwise_all_to_all(p)));
  }
}

// Catches a phase along another dimension than that of its line.
TEST(TorusAllToAll, SendsToNeighboursOnly) {
  for (const std::vector<int>& dims : {std::vector<int>{3, 5}, {4, 4}, {2, 3, 4}, {7}}) {
    const Torus torus(dims);
    const Schedule s = torus_all_to_all(dims);
    EXPECT_EQ(failure(s, {Collective::all_to_all, s.ranks, s.blocks}), "");
    for (int k = 0; k < s.rounds; ++k) {
      for_each_transfer(s, k, [&](const Transfer& t) {
        int hops = 0;
        for (int d = 0; d < torus.dimensions(); ++d) {
          const int way = torus.coordinate(t.to.front(), d) - torus.coordinate(t.from.front(), d);
          hops += std::min(wrapped(way, torus.size(d)), wrapped(-way, torus.size(d)));
        }
        EXPECT_EQ(hops, 1);
      });
    }
  }
}

TEST(PatRing, EveryBlockCrossesIntoAGroupOnce) {
  for (const auto& [p, g] : {std::pair(12, 3), {16, 4}, {10, 5}, {7, 1}, {7, 7}, {18, 2}}) {
    for (const int a : {1, 2, 8}) {
      const Schedule s = pat_ring_all_gather(p, g, a);
      EXPECT_EQ(failure(s, {Collective::all_gather, p, p}), "") << p << " " << g << " " << a;
      std::map<int, int> into;
      for (const auto& [pair, crossed] : crossing(s, g)) into[pair.second] += crossed.second;
      for (int j = 0; j < p / g; ++j) EXPECT_EQ(into[j], p - g);
      for (int k = 0; k < s.rounds; ++k) {
        for_each_transfer(s, k, [&, g = g](const Transfer& t) {
          const bool crosses = t.from.front() / g != t.to.front() / g;
          EXPECT_LE(t.what.list.size(), crosses ? a : p / g);
        });
      }
    }
  }
}

}  // namespace
}  // namespace rankine
