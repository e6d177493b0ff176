#include "algorithms/one_block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "algorithms/recursive_doubling.h"
#include "algorithms/trivance.h"
#include "tests/algorithms/reference.h"

namespace rankine {
namespace {

const std::vector<int> kTori[] = {{1},    {2},    {5},    {9},    {16},
                                  {2, 2}, {3, 3}, {5, 3}, {4, 6}, {3, 2, 4}};

// All of the all-gather's messages, cut down to the root's blocks, and no other: the definition,
// which looks at everybody's messages.
TEST(OneBlock, BroadcastIsWhatTheAllGatherDoesWithTheRootsBlocks) {
  using Told = std::tuple<int, Rank, Rank, Block>;
  for (const std::vector<int>& dims : kTori) {
    const Schedule all = trivance_all_gather(dims);
    const int s = all.blocks / all.ranks;
    for (const Rank root : ranks(all.ranks)) {
      const Schedule one = trivance_broadcast(dims, root);
      EXPECT_EQ(one.rounds, all.rounds);
      EXPECT_EQ(one.blocks, s);
      std::vector<Told> expected, told;
      for (int k = 0; k < all.rounds; ++k) {
        for_each_transfer(all, k, [&](const Transfer& t) {
          t.what.list.for_each([&](Block b) {
            if (b / s == root) expected.emplace_back(k, t.from.front(), t.to.front(), b % s);
          });
        });
        for_each_transfer(one, k, [&](const Transfer& t) {
          t.what.list.for_each(
              [&](Block b) { told.emplace_back(k, t.from.front(), t.to.front(), b); });
        });
      }
      std::sort(expected.begin(), expected.end());
      std::sort(told.begin(), told.end());
      EXPECT_EQ(told, expected) << dims_text(dims) << ", root " << root;
    }
  }
}

TEST(OneBlock, GivesTheRightNumbersForEveryRoot) {
  for (const std::vector<int>& dims : kTori) {
    for (const Rank root : ranks(Torus(dims).ranks())) {
      SCOPED_TRACE(dims_text(dims) + ", root " + std::to_string(root));
      const Schedule down = trivance_broadcast(dims, root), up = trivance_reduce(dims, root);
      EXPECT_EQ(failure(down, {Collective::broadcast, down.ranks, down.blocks, root}), "");
      EXPECT_EQ(failure(up, {Collective::reduce, up.ranks, up.blocks, root}), "");
    }
  }
}

// Two ports a round: who have it tell two more each, and powers of three are reached in so many
// rounds.
TEST(OneBlock, TrivanceBroadcastTriplesTheRanksThatHaveIt) {
  for (int s = 0; s <= 5; ++s) {
    const Schedule one = trivance_broadcast({power_of_three(s)}, 1);
    ASSERT_EQ(one.rounds, s);
    for (int k = 0, have = 1; k < s; ++k, have *= 3) {
      int told = 0;
      for_each_transfer(one, k, [&](const Transfer&) { ++told; });
      EXPECT_EQ(told, 2 * have);
    }
  }
}

TEST(OneBlock, IsOfAllGathersInWhichEveryoneDoesTheSame) {
  EXPECT_THROW(broadcast_of(recursive_doubling_all_gather(4), 0), std::logic_error);
  EXPECT_THROW(broadcast_of(trivance_latency_line(4), 0), std::logic_error);
}

}  // namespace
}  // namespace rankine
