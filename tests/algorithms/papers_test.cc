// The worked examples of the papers (algorithms/papers.md), among four ranks unless stated
// otherwise: the messages of each round, and the values that each rank holds after it.
//
// Rank r's contribution to an all-reduce is 1 << r, so a sum shows its contributors: 0b1001 is v0 +
// v3. All is the complete sum; an underscore is a place that the paper calls stale or unknown.
#include <gtest/gtest.h>

#include <set>

#include "algorithms/bruck.h"
#include "algorithms/direct.h"
#include "algorithms/halving_doubling.h"
#include "algorithms/hierarchical.h"
#include "algorithms/pat.h"
#include "algorithms/recursive_doubling.h"
#include "algorithms/ring.h"
#include "algorithms/tree.h"
#include "tests/algorithms/reference.h"

namespace rankine {
namespace {

using Texts = std::vector<std::string>;
using Table = std::vector<std::vector<std::int64_t>>;

constexpr std::int64_t kAll = 0b1111, kStale = -1;

Value mask(Rank r, Block) { return std::int64_t{1} << r; }
Value at_root(Rank r, Block b) { return r == 0 ? Value(b + 1) : Value(); }
Value own_block(Rank r, Block b) { return r == b ? Value(b + 1) : Value(); }

// Runs `rounds` rounds from `before`; does not compare places that `expected` calls stale.
void expect_after(int rounds, const Schedule& s, const std::function<Value(Rank, Block)>& before,
                  const Table& expected) {
  const Reference reference = Reference(s, before).run(rounds);
  EXPECT_EQ(reference.error(), "");
  Table held = reference.table();
  ASSERT_EQ(held.size(), expected.size());
  for (std::size_t r = 0; r < held.size(); ++r) {
    ASSERT_EQ(held[r].size(), expected[r].size());
    for (std::size_t b = 0; b < held[r].size(); ++b) {
      if (expected[r][b] == kStale) held[r][b] = kStale;
    }
  }
  EXPECT_EQ(held, expected) << "after " << rounds << " rounds";
}

// Lu 3.1, ring broadcast with four segments.
TEST(Lu, RingBroadcast) {
  const Schedule s = chain_broadcast(4, 0, 4);
  ASSERT_EQ(s.rounds, 4 - 1 + 4 - 1);
  const std::vector<std::set<std::string>> steps = {{"0>1:0"},
                                                    {"0>1:1", "1>2:0"},
                                                    {"0>1:2", "1>2:1", "2>3:0"},
                                                    {"0>1:3", "1>2:2", "2>3:1"},
                                                    {"1>2:3", "2>3:2"},
                                                    {"2>3:3"}};
  for (int k = 0; k < s.rounds; ++k) {
    const Texts sent = messages(s, k);
    EXPECT_EQ(std::set<std::string>(sent.begin(), sent.end()), steps[static_cast<std::size_t>(k)]);
  }
  expect_after(3, s, at_root, {{1, 2, 3, 4}, {1, 2, 3, 0}, {1, 2, 0, 0}, {1, 0, 0, 0}});
  expect_after(4, s, at_root, {{1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 0}, {1, 2, 0, 0}});
  expect_after(6, s, at_root, {{1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}});
}

// Lu 3.2: the ranks that hold V double, near first.
TEST(Lu, BinomialTreeBroadcast) {
  const Schedule s = tree_broadcast(binomial_near(4), 0, 1);
  ASSERT_EQ(s.rounds, 2);
  EXPECT_EQ(messages(s, 0), (Texts{"0>1:0"}));
  EXPECT_EQ(messages(s, 1), (Texts{"0>2:0", "1>3:0"}));
  expect_after(1, s, at_root, {{1}, {1}, {0}, {0}});
  expect_after(2, s, at_root, {{1}, {1}, {1}, {1}});
}

// Lu 3.3: one message, copied by the switch.
TEST(Lu, SwitchMulticast) {
  const Schedule s = switch_broadcast(4, 0);
  ASSERT_EQ(s.rounds, 1);
  EXPECT_EQ(messages(s, 0), (Texts{"0>1,2,3:0"}));
}

// Lu 4.1: the chain towards rank 0, four segments.
TEST(Lu, RingReduce) {
  const Schedule s = chain_reduce(4, 0, 4);
  ASSERT_EQ(s.rounds, 6);
  EXPECT_EQ(messages(s, 0), (Texts{"3>2:0+"}));
  EXPECT_EQ(messages(s, 1), (Texts{"2>1:0+", "3>2:1+"}));
  EXPECT_EQ(messages(s, 2), (Texts{"1>0:0+", "2>1:1+", "3>2:2+"}));
  EXPECT_EQ(messages(s, 5), (Texts{"1>0:3+"}));
  expect_after(
      3, s, mask,
      {{kAll, 1, 1, 1}, {0b1110, 0b1110, 2, 2}, {0b1100, 0b1100, 0b1100, 4}, {8, 8, 8, 8}});
  expect_after(6, s, mask,
               {{kAll, kAll, kAll, kAll},
                {0b1110, 0b1110, 0b1110, 0b1110},
                {0b1100, 0b1100, 0b1100, 0b1100},
                {8, 8, 8, 8}});
}

// Lu 4.2. The paper reverses the steps of 3.2, by its text. In fact it reverses the far-first tree
// (ranks whose k-th bit is 1 send in step k).
TEST(Lu, BinomialTreeReduce) {
  const Schedule s = tree_reduce(binomial_far(4), 0, 1);
  ASSERT_EQ(s.rounds, 2);
  EXPECT_EQ(messages(s, 0), (Texts{"1>0:0+", "3>2:0+"}));
  EXPECT_EQ(messages(s, 1), (Texts{"2>0:0+"}));
  expect_after(1, s, mask, {{0b0011}, {kStale}, {0b1100}, {kStale}});
  expect_after(2, s, mask, {{kAll}, {kStale}, {kStale}, {kStale}});
}

// The papers' ring turns right and leaves rank i with block i + 1 after the reduce-scatter. Ours
// turns left and leaves rank i with block i. Mirroring the ranks and adding one to the blocks
// converts one into the other.
Schedule papers_reduce_scatter(int p) {
  return on({p, p, [p](Rank r) { return (p - r) % p; },
             [p](Block b) { return IndexList((p - b + 1) % p); }},
            ring_reduce_scatter(p));
}
Schedule papers_all_gather(int p) {
  return on({p, p, [](Rank r) { return r; }, [p](Block b) { return IndexList((b + 1) % p); }},
            ring_all_gather(p));
}

// Lu 5.1; the lesson and the chapter have this ring too.
TEST(Lu, RingAllReduce) {
  const Schedule s = then(papers_reduce_scatter(4), papers_all_gather(4));
  ASSERT_EQ(s.rounds, 6);
  for (int t = 1; t <= 3; ++t) {
    std::set<std::string> scatter, gather;
    for (int i = 0; i < 4; ++i) {
      const std::string edge = std::to_string(i) + ">" + std::to_string((i + 1) % 4) + ":";
      scatter.insert(edge + std::to_string((i - t + 1 + 4) % 4) + "+");
      gather.insert(edge + std::to_string((i - t + 2 + 4) % 4));
    }
    const Texts first = messages(s, t - 1), second = messages(s, 3 + t - 1);
    EXPECT_EQ(std::set<std::string>(first.begin(), first.end()), scatter) << t;
    EXPECT_EQ(std::set<std::string>(second.begin(), second.end()), gather) << t;
  }
  expect_after(1, s, mask,
               {{1, 1, 1, 0b1001}, {0b0011, 2, 2, 2}, {4, 0b0110, 4, 4}, {8, 8, 0b1100, 8}});
  expect_after(2, s, mask,
               {{1, 1, 0b1101, 0b1001},
                {0b0011, 2, 2, 0b1011},
                {0b0111, 0b0110, 4, 4},
                {8, 0b1110, 0b1100, 8}});
  expect_after(3, s, mask,
               {{1, kAll, 0b1101, 0b1001},
                {0b0011, 2, kAll, 0b1011},
                {0b0111, 0b0110, 4, kAll},
                {kAll, 0b1110, 0b1100, 8}});
  const std::int64_t u = kStale;
  expect_after(4, s, mask,
               {{kAll, kAll, u, u}, {u, kAll, kAll, u}, {u, u, kAll, kAll}, {kAll, u, u, kAll}});
  expect_after(
      5, s, mask,
      {{kAll, kAll, u, kAll}, {kAll, kAll, kAll, u}, {u, kAll, kAll, kAll}, {kAll, u, kAll, kAll}});
  expect_after(6, s, mask, Table(4, std::vector<std::int64_t>(4, kAll)));
}

// Lu 5.2: a single binary tree.
TEST(Lu, SingleBinaryTree) {
  const Schedule s = tree_all_reduce(heap(4), 1);
  ASSERT_EQ(s.rounds, 4);
  EXPECT_EQ(messages(s, 0), (Texts{"3>1:0+"}));
  EXPECT_EQ(messages(s, 1), (Texts{"1>0:0+", "2>0:0+"}));
  EXPECT_EQ(messages(s, 2), (Texts{"0>1:0", "0>2:0"}));
  EXPECT_EQ(messages(s, 3), (Texts{"1>3:0"}));
  expect_after(1, s, mask, {{1}, {0b1010}, {4}, {kStale}});
  expect_after(2, s, mask, {{kAll}, {kStale}, {kStale}, {kStale}});
  expect_after(3, s, mask, {{kAll}, {kAll}, {kAll}, {kStale}});
  expect_after(4, s, mask, {{kAll}, {kAll}, {kAll}, {kAll}});
}

// Lu 5.2: two trees with complementary interiors, half of the vector each.
TEST(Lu, DoubleBinaryTree) {
  const Schedule s = double_tree_all_reduce(4, 1);
  ASSERT_EQ(s.rounds, 4);
  EXPECT_EQ(messages(s, 0), (Texts{"3>1:0+", "1>2:1+"}));
  EXPECT_EQ(messages(s, 1), (Texts{"1>0:0+", "2>3:1+", "2>0:0+", "0>3:1+"}));
  EXPECT_EQ(messages(s, 2), (Texts{"0>2:0", "3>0:1", "0>1:0", "3>2:1"}));
  EXPECT_EQ(messages(s, 3), (Texts{"1>3:0", "2>1:1"}));
  const std::int64_t u = kStale;
  expect_after(1, s, mask, {{1, 1}, {0b1010, u}, {4, 0b0110}, {u, 8}});
  expect_after(2, s, mask, {{kAll, u}, {u, u}, {u, u}, {u, kAll}});
  expect_after(3, s, mask, {{kAll, kAll}, {kAll, u}, {kAll, kAll}, {u, kAll}});
  expect_after(4, s, mask, Table(4, {kAll, kAll}));
}

// Lu 5.3: all ranks send up and receive the sum in one transfer each.
TEST(Lu, SwitchAllReduce) {
  const Schedule s = switch_all_reduce(4);
  EXPECT_EQ(messages(s, 0), (Texts{"0,1,2,3>0,1,2,3:0=0@1+"}));
  expect_after(2, s, mask, {{kAll}, {kAll}, {kAll}, {kAll}});
}

// Lu 7.1. Chunk v_ij is number 4 i + j.
TEST(Lu, RingAllToAll) {
  const Schedule s = ring_relay_all_to_all(4);
  ASSERT_EQ(s.rounds, 3);
  // v01 0>1, v12, v23, v30 to the right; v03 0>3, v10, v21, v32 to the left
  EXPECT_EQ(messages(s, 0),
            (Texts{"0>1:1", "1>2:6", "2>3:11", "3>0:12", "0>3:3", "1>0:4", "2>1:9", "3>2:14"}));
  // v02, v13, v20, v31 set out to the right,
  EXPECT_EQ(messages(s, 1), (Texts{"0>1:2", "1>2:7", "2>3:8", "3>0:13"}));
  // and are forwarded: v31 at 0, v02 at 1, v13 at 2, v20 at 3.
  EXPECT_EQ(messages(s, 2), (Texts{"0>1:13", "1>2:2", "2>3:7", "3>0:8"}));
  EXPECT_EQ(failure(s, {Collective::all_to_all, 4, 16, 0, 0}), "");
}

// Lu 7.1 counts N - 1 chunks on the busiest edge. That holds up to N = 4: a chunk with w hops to go
// crosses w edges, so for larger N the count is floor(N / 2) (floor(N / 2) + 1) / 2.
TEST(Lu, RingAllToAllNeedsMoreThanThePaperSays) {
  EXPECT_EQ(ring_relay_all_to_all(8).rounds, 10);
  int to_the_right = 0;
  const Schedule s = ring_relay_all_to_all(8);
  for (int k = 0; k < s.rounds; ++k) {
    for (const std::string& message : messages(s, k)) to_the_right += message.rfind("0>1:", 0) == 0;
  }
  EXPECT_EQ(to_the_right, 1 + 2 + 3 + 4);
}

// Lu 7.2: step t serves offset t.
TEST(Lu, PairwiseAllToAll) {
  const Schedule s = pairwise_all_to_all(4);
  ASSERT_EQ(s.rounds, 3);
  EXPECT_EQ(messages(s, 0), (Texts{"0>1:1", "1>2:6", "2>3:11", "3>0:12"}));
  EXPECT_EQ(messages(s, 1), (Texts{"0>2:2", "1>3:7", "2>0:8", "3>1:13"}));
  EXPECT_EQ(messages(s, 2), (Texts{"0>3:3", "1>0:4", "2>1:9", "3>2:14"}));
}

// Lu 8.
TEST(Lu, PointToPoint) {
  EXPECT_EQ(messages(direct_send_recv(2, 0, 1), 0), (Texts{"0>1:0"}));
  EXPECT_EQ(direct_send_recv(2, 1, 1).rounds, 0);
}

// Lu, appendix A, N = 8: the tree of block 0 is the paper's. Its messages carry 1, 2 and 4 blocks;
// with the paper's one block per message no rank could have seven blocks after three rounds.
TEST(Lu, ParallelAggregatedTrees) {
  const Schedule s = pat_all_gather(8, 4);
  ASSERT_EQ(s.rounds, 3);
  const std::vector<std::set<std::string>> tree = {
      {"0>4"}, {"0>2", "4>6"}, {"0>1", "2>3", "4>5", "6>7"}};
  for (int k = 0; k < 3; ++k) {
    std::set<std::string> edges;
    for_each_transfer(s, k, [&](const Transfer& t) {
      EXPECT_EQ(t.what.list.size(), 1 << k);
      t.what.list.for_each([&](Block b) {
        if (b == 0)
          edges.insert(std::to_string(t.from.front()) + ">" + std::to_string(t.to.front()));
      });
    });
    EXPECT_EQ(edges, tree[static_cast<std::size_t>(k)]);
  }
}

// Jeaugey, arXiv:2506.20252: A blocks per message, log2 A rounds, then N / A - 1.
TEST(Pat, TradesRoundsForBuffers) {
  for (int n : {8, 16, 64}) {
    for (int a = 1; a < n; a *= 2) {
      const Schedule s = pat_all_gather(n, a);
      EXPECT_EQ(s.rounds, floor_log2(a) + n / a - 1);
      for (int k = 0; k < s.rounds; ++k) {
        for_each_transfer(s, k, [&](const Transfer& t) { EXPECT_LE(t.what.list.size(), a); });
      }
    }
  }
}

// Lu B.1.
TEST(Lu, RecursiveDoublingAllReduce) {
  const Schedule s = recursive_doubling_all_reduce(4);
  ASSERT_EQ(s.rounds, 2);
  EXPECT_EQ(messages(s, 0), (Texts{"0>1:0+", "1>0:0+", "2>3:0+", "3>2:0+"}));
  EXPECT_EQ(messages(s, 1), (Texts{"0>2:0+", "1>3:0+", "2>0:0+", "3>1:0+"}));
  expect_after(1, s, mask, {{0b0011}, {0b0011}, {0b1100}, {0b1100}});
  expect_after(2, s, mask, {{kAll}, {kAll}, {kAll}, {kAll}});
}

// Lu B.2. In its second step the paper lets R1 keep chunk 3 and R3 chunk 2, but R0 chunk 0 and R2
// chunk 1. Ours follows the rule (the partner with the bit keeps the upper half): R1 keeps 2, R3
// keeps 3.
TEST(Lu, RabenseifnerHalvingDoubling) {
  const Schedule s = halving_doubling_all_reduce(4);
  ASSERT_EQ(s.rounds, 4);
  EXPECT_EQ(messages(s, 0), (Texts{"1>0:0.1+", "0>1:2.3+", "3>2:0.1+", "2>3:2.3+"}));
  EXPECT_EQ(messages(s, 1), (Texts{"2>0:0+", "3>1:2+", "0>2:1+", "1>3:3+"}));
  EXPECT_EQ(messages(s, 2), (Texts{"0>2:0", "1>3:2", "2>0:1", "3>1:3"}));
  EXPECT_EQ(messages(s, 3), (Texts{"0>1:0.1", "1>0:2.3", "2>3:0.1", "3>2:2.3"}));
  const std::int64_t u = kStale;
  expect_after(1, s, mask,
               {{0b0011, 0b0011, u, u},
                {u, u, 0b0011, 0b0011},
                {0b1100, 0b1100, u, u},
                {u, u, 0b1100, 0b1100}});
  expect_after(2, s, mask, {{kAll, u, u, u}, {u, u, kAll, u}, {u, kAll, u, u}, {u, u, u, kAll}});
  expect_after(3, s, mask,
               {{kAll, kAll, u, u}, {u, u, kAll, kAll}, {kAll, kAll, u, u}, {u, u, kAll, kAll}});
  expect_after(4, s, mask, Table(4, std::vector<std::int64_t>(4, kAll)));
}

// Lu B.4, all-gather; the reduce-scatter is its mirror image in time.
TEST(Lu, RecursiveDoublingAllGather) {
  const Schedule s = recursive_doubling_all_gather(4);
  ASSERT_EQ(s.rounds, 2);
  EXPECT_EQ(messages(s, 0), (Texts{"0>1:0", "1>0:1", "2>3:2", "3>2:3"}));
  EXPECT_EQ(messages(s, 1), (Texts{"0>2:0.1", "1>3:0.1", "2>0:2.3", "3>1:2.3"}));
  expect_after(1, s, own_block, {{1, 2, 0, 0}, {1, 2, 0, 0}, {0, 0, 3, 4}, {0, 0, 3, 4}});
  expect_after(2, s, own_block, Table(4, {1, 2, 3, 4}));
  const Schedule scatter = recursive_halving_reduce_scatter(4);
  const std::int64_t u = kStale;
  EXPECT_EQ(messages(scatter, 0), (Texts{"2>0:0.1+", "3>1:0.1+", "0>2:2.3+", "1>3:2.3+"}));
  expect_after(2, scatter, mask,
               {{kAll, u, u, u}, {u, kAll, u, u}, {u, u, kAll, u}, {u, u, u, kAll}});
}

// Lu B.5: the paper's rotations concern the place of blocks in memory; by name the blocks travel
// like this.
TEST(Lu, BruckAllToAll) {
  const Schedule s = bruck_all_to_all(4);
  ASSERT_EQ(s.rounds, 2);
  // R0 > R1: v01 v03, R1 > R2: v12 v10, R2 > R3: v23 v21, R3 > R0: v30 v32
  EXPECT_EQ(messages(s, 0), (Texts{"0>1:1.3", "1>2:6.4", "2>3:11.9", "3>0:12.14"}));
  // R0 > R2: v02 v32, R1 > R3: v13 v03, R2 > R0: v20 v10, R3 > R1: v31 v21
  EXPECT_EQ(messages(s, 1), (Texts{"0>2:2.14", "1>3:7.3", "2>0:8.4", "3>1:13.9"}));
  EXPECT_EQ(failure(s, {Collective::all_to_all, 4, 16, 0, 0}), "");
}

// Lu, appendix C: the conveyor of three steps and three segments.
TEST(Lu, Pipelining) {
  const Schedule s = pipelined(chain_hops(4), 3);
  EXPECT_EQ(s.rounds, 3 + 3 - 1);
  std::vector<std::size_t> busy;
  for (int k = 0; k < s.rounds; ++k) busy.push_back(messages(s, k).size());
  EXPECT_EQ(busy, (std::vector<std::size_t>{1, 2, 3, 2, 1}));
}

// The chapter's tree: reduce by halving the ranks, broadcast by doubling them.
TEST(Chapter, TreeAllReduce) {
  const Schedule s = tree_reduce_then_broadcast(binomial_far(4), 1);
  ASSERT_EQ(s.rounds, 4);
  EXPECT_EQ(messages(s, 0), (Texts{"1>0:0+", "3>2:0+"}));
  EXPECT_EQ(messages(s, 1), (Texts{"2>0:0+"}));
  EXPECT_EQ(messages(s, 2), (Texts{"0>2:0"}));
  EXPECT_EQ(messages(s, 3), (Texts{"0>1:0", "2>3:0"}));
  expect_after(2, s, mask, {{kAll}, {kStale}, {0b1100}, {kStale}});
  expect_after(3, s, mask, {{kAll}, {kStale}, {kAll}, {kStale}});
  expect_after(4, s, mask, {{kAll}, {kAll}, {kAll}, {kAll}});
}

// The chapter's halving and doubling starts with the farthest partners.
TEST(Chapter, HalvingDoublingFarFirst) {
  const Schedule s = halving_doubling_far_all_reduce(8);
  ASSERT_EQ(s.rounds, 6);
  for (int k = 1; k <= 3; ++k) {
    for_each_transfer(s, k - 1, [&](const Transfer& t) {
      EXPECT_EQ(t.from.front() ^ t.to.front(), 1 << (3 - k));
      EXPECT_EQ(t.what.list.size(), 8 >> k);
    });
  }
}

// The chapter's exercise 1, on its numbers, in the paper's direction,
TEST(Chapter, ExerciseOneRingReduceScatter) {
  const auto numbers = [](Rank r, Block b) { return Value(4 * r + b + 1); };
  const Schedule s = papers_reduce_scatter(4);
  expect_after(1, s, numbers, {{1, 2, 3, 20}, {6, 6, 7, 8}, {9, 16, 11, 12}, {13, 14, 26, 16}});
  expect_after(2, s, numbers, {{1, 2, 29, 20}, {6, 6, 7, 28}, {15, 16, 11, 12}, {13, 30, 26, 16}});
  expect_after(3, s, numbers,
               {{1, 32, 29, 20}, {6, 6, 36, 28}, {15, 16, 11, 40}, {28, 30, 26, 16}});
}

// and as the collective's contract asks: rank i ends with the sum of block i.
TEST(Chapter, ExerciseOneByTheContract) {
  const auto numbers = [](Rank r, Block b) { return Value(4 * r + b + 1); };
  const std::int64_t u = kStale;
  expect_after(3, ring_reduce_scatter(4), numbers,
               {{28, u, u, u}, {u, 32, u, u}, {u, u, 36, u}, {u, u, u, 40}});
  expect_after(6, ring_all_reduce(4), numbers, Table(4, {28, 32, 36, 40}));
}

// The blocks that the busiest of the groups of g ranks sends to other groups.
std::int64_t crossing(const Schedule& s, int g) {
  std::vector<std::int64_t> sent(static_cast<std::size_t>(s.ranks / g));
  for (int k = 0; k < s.rounds; ++k) {
    for_each_transfer(s, k, [&](const Transfer& t) {
      const int from = t.from.front() / g;
      if (from != t.to.front() / g) sent[static_cast<std::size_t>(from)] += t.what.list.size();
    });
  }
  return *std::max_element(sent.begin(), sent.end());
}

// The chapter's exercise 3: 8 nodes of 8; 2 (7) rounds between nodes, 1/8 of the vector each.
TEST(Chapter, ExerciseThreeTwoDimensionalRing) {
  const Schedule s = ring_2d_all_reduce(64, 8);
  ASSERT_EQ(s.phases.size(), 3u);
  EXPECT_EQ(s.phases[0].rounds, 7);
  EXPECT_EQ(s.phases[1].rounds, 14);
  EXPECT_EQ(s.phases[2].rounds, 7);
  EXPECT_EQ(ring_all_reduce(64).rounds, 126);
  // Eight members send 2 * 7 / 8 of 1/8 of the vector each: 1.75 vectors leave a node. In the flat
  // ring one member at each node's border sends 2 * 63 / 64 = 1.97 vectors. The node saves little;
  // only the traffic of each border rank is eight times less.
  EXPECT_EQ(crossing(s, 8), 64 * 2 * 7 / 8);
  EXPECT_EQ(crossing(ring_all_reduce(64), 8), 2 * 63);
}

// The chapter's exercise 5: six ranks, by folding two of them.
TEST(Chapter, ExerciseFiveSixRanks) {
  const Schedule s = halving_doubling_all_reduce(6);
  EXPECT_EQ(s.rounds, 2 * 2 + 2);
  EXPECT_EQ(messages(s, 0), (Texts{"1>0:0.1.2.3+", "3>2:0.1.2.3+"}));
  EXPECT_EQ(messages(s, 5), (Texts{"0>1:0.1.2.3", "2>3:0.1.2.3"}));
  EXPECT_EQ(failure(s, {Collective::all_reduce, 6, 4, 0, 0}), "");
}

// The chapter's exercise 6 takes half of the rounds from the shortest way and half of the bytes per
// round from mirrored halves. They are two algorithms: each has one of the two.
TEST(Chapter, ExerciseSixBidirectionalRing) {
  for (int n : {4, 7, 8}) {
    EXPECT_EQ(ring_mirrored_all_reduce(n).rounds, 2 * (n - 1));
    EXPECT_EQ(ring_shortest_all_reduce(n).rounds, 2 * (n / 2));
  }
  EXPECT_EQ(messages(ring_mirrored_all_gather(4), 0),
            (Texts{"0>1:0", "1>2:2", "2>3:4", "3>0:6", "0>3:1", "1>0:3", "2>1:5", "3>2:7"}));
  // N = 4: one block from either side, then half a block from either side, straight across.
  const Schedule s = ring_shortest_all_gather(4);
  EXPECT_EQ(messages(s, 0), (Texts{"0>1:0.1", "1>2:2.3", "2>3:4.5", "3>0:6.7", "0>3:0.1", "1>0:2.3",
                                   "2>1:4.5", "3>2:6.7"}));
  EXPECT_EQ(messages(s, 1),
            (Texts{"0>1:6", "1>2:0", "2>3:2", "3>0:4", "0>3:3", "1>0:5", "2>1:7", "3>2:1"}));
}

// The lesson: each node sends 2 S (nodes - 1) / nodes to other nodes.
TEST(Lesson, HierarchicalAllReduce) {
  const int nodes = 64, g = 8;
  const Schedule s = hierarchical_all_reduce(nodes * g, g, 1);
  EXPECT_EQ(s.blocks, nodes);
  EXPECT_EQ(crossing(s, g), 2 * (nodes - 1));
  // In the flat ring only one rank per node sends to the next node: 2 S (N - 1) / N. So the bytes
  // that leave a node are not "8x less", as in the lesson: the messages are 8 times fewer.
  EXPECT_EQ(crossing(ring_all_reduce(64), 8), 2 * 63);
  ASSERT_EQ(s.phases.size(), 3u);
  EXPECT_EQ(s.phases[0].rounds, g - 1);
  EXPECT_EQ(s.phases[1].rounds, 2 * (nodes - 1));
  EXPECT_EQ(s.phases[2].rounds, g - 1);
}

// The lesson: to a central root and back; the root's links carry everything.
TEST(Lesson, NaiveAllReduce) {
  const Schedule s = central_all_reduce(4);
  EXPECT_EQ(messages(s, 0), (Texts{"1>0:0+", "2>0:0+", "3>0:0+"}));
  EXPECT_EQ(messages(s, 1), (Texts{"0>1:0", "0>2:0", "0>3:0"}));
}

// The lesson: AllReduce(x) = AllGather(ReduceScatter(x)).
TEST(Lesson, AllReduceIsAllGatherOfReduceScatter) {
  EXPECT_EQ(text_of(ring_all_reduce(4)), text_of(then(ring_reduce_scatter(4), ring_all_gather(4))));
}

}  // namespace
}  // namespace rankine
