#include "algorithms/trivance.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/algorithms/reference.h"

namespace rankine {
namespace {

TEST(Trivance, ReachSharesOutTheRing) {
  for (int n = 1; n <= 1000; ++n) {
    const Reach reach = trivance_reach(n);
    EXPECT_EQ(reach.down + reach.up + 1, n);
    for (int d = 1; d <= n; d *= 3) {
      EXPECT_LT(reach.down / d % 3, 2) << n;
      EXPECT_LT(reach.up / d % 3, 2) << n;
    }
  }
  EXPECT_EQ(trivance_reach(9).up, 4);
  EXPECT_EQ(trivance_reach(9).down, 4);
}

// In ceil(log3 n) rounds, and every block once to every rank.
TEST(Trivance, AllGatherSendsEveryBlockOnce) {
  for (int n = 1; n <= 300; ++n) {
    const Schedule s = trivance_line(n);
    EXPECT_EQ(s.rounds, ceil_log3(n));
    std::vector<int> sent(static_cast<std::size_t>(n), 0);
    for (int k = 0; k < s.rounds; ++k) {
      for_each_transfer(s, k, [&](const Transfer& t) {
        sent[static_cast<std::size_t>(t.from.front())] += t.what.list.size();
      });
    }
    EXPECT_EQ(sent, std::vector<int>(static_cast<std::size_t>(n), n - 1)) << n;
    if (n > 60) continue;
    EXPECT_EQ(failure(s, {Collective::all_gather, n, n, 0, 0}), "") << n;
  }
}

// Section 4.1: partners at distance 3^k on both sides.
TEST(Trivance, PartnersAreThePapers) {
  const Schedule s = trivance_all_reduce({27});
  std::set<std::string> firsts;
  for (int k = 0; k < s.rounds; ++k) {
    for_each_transfer(s, k, [&](const Transfer& t) {
      if (t.from.front() != 0) return;
      const int way = t.to.front() > 13 ? t.to.front() - 27 : t.to.front();
      firsts.insert(std::to_string(k) + ":" + std::to_string(way) + " x" +
                       std::to_string(t.what.list.size()));
    });
  }
  EXPECT_EQ(firsts, (std::set<std::string>{"0:-1 x9", "0:1 x9", "1:-3 x3", "1:3 x3", "2:-9 x1",
                                              "2:9 x1", "3:9 x1", "3:-9 x1", "4:3 x3", "4:-3 x3",
                                              "5:1 x9", "5:-1 x9"}));
}

// Algorithm 1 of the paper: everything one has, to both sides, at distance 3^k.
TEST(Trivance, PlanIsThePapersForPowersOfThree) {
  int n = 1;
  for (int s = 1; s <= 7; ++s) {
    n *= 3;
    const RunPlan plan = trivance_plan(n);
    ASSERT_EQ(static_cast<int>(plan.size()), s);
    for (int k = 0; k < s; ++k) {
      const auto& round = plan[static_cast<std::size_t>(k)];
      ASSERT_EQ(round.size(), 2u);
      EXPECT_EQ(round[0].distance, power_of_three(k));
      EXPECT_EQ(round[1].distance, -power_of_three(k));
      EXPECT_TRUE(round[0].parts.all() && round[1].parts.all());
    }
  }
}

TEST(Trivance, PlanReachesAllInAsFewRoundsAsCanBe) {
  for (int n = 1; n <= 800; n += n < 250 ? 1 : 37) {
    const RunPlan plan = trivance_plan(n);
    EXPECT_EQ(static_cast<int>(plan.size()), ceil_log3(n));
    Runs runs;
    for (const auto& round : plan) {
      EXPECT_LE(round.size(), 2u);
      const Runs theirs = runs;
      for (const RunMessage& message : round) {
        const bool left = message.distance > 0;
        EXPECT_EQ(message.distance, left
                                        ? message_from_left(theirs, runs, message.parts).distance
                                        : message_from_right(theirs, runs, message.parts).distance);
        (left ? runs.left : runs.right) += theirs.length(message.parts);
      }
    }
    EXPECT_EQ(runs.total(), n);
  }
}

TEST(Trivance, GivesTheRightNumbersOnTori) {
  for (const std::vector<int>& dims : std::vector<std::vector<int>>{
           {2}, {3, 3}, {3, 5}, {5, 3}, {4, 4}, {2, 7}, {3, 3, 3}, {2, 3, 4}, {5, 2, 5}}) {
    const int n = Torus(dims).ranks();
    SCOPED_TRACE(dims_text(dims));
    for (const auto& make : {trivance_all_reduce, trivance_latency_all_reduce}) {
      const Schedule s = make(dims);
      EXPECT_EQ(failure(s, {Collective::all_reduce, n, s.blocks, 0, 0}), "");
    }
  }
}

}  // namespace
}  // namespace rankine
