#include "algorithms/trivance.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/algorithms/reference.h"

namespace rankine {
namespace {

TEST(Trivance, DistancesAreThirdsAndAddUpToHalfTheRing) {
  for (int n = 1; n <= 3000; ++n) {
    const std::vector<int> distances = trivance_thirds(n);
    EXPECT_EQ(static_cast<int>(distances.size()), ceil_log3(n)) << n;
    int sum = 0;
    for (const int d : distances) sum += d;
    EXPECT_EQ(sum, n / 2) << n;
  }
  EXPECT_EQ(trivance_thirds(5), (std::vector{1, 1}));
  EXPECT_EQ(trivance_thirds(64), (std::vector{21, 7, 3, 1}));
  EXPECT_EQ(trivance_thirds(81), (std::vector{27, 9, 3, 1}));
}

// In ceil(log3 n) rounds, every block once to every rank, the same number either way.
TEST(Trivance, AllGatherSendsEveryBlockOnceAndAsManyUpAsDown) {
  for (int n = 1; n <= 300; ++n) {
    const Schedule s = trivance_line(n);
    EXPECT_EQ(s.rounds, ceil_log3(n));
    int up = 0, down = 0, load = 0;
    for (int k = 0; k < s.rounds; ++k) {
      for_each_transfer(s, k, [&](const Transfer& t) {
        if (t.from.front() != 0) return;
        (2 * t.to.front() <= n ? up : down) += t.what.list.size();
        if (2 * t.to.front() <= n) load += t.what.list.size() * t.to.front();
      });
    }
    EXPECT_EQ(up + down, n - 1) << n;
    EXPECT_EQ(up, n / 2) << n;
    // What powers of three put on a link is never passed by more than an eighth.
    if (n > 2) {
      EXPECT_LE(24 * load, 9 * n * s.rounds) << n;
    }
    if (n > 100 && n != 255 && n != 256) continue;
    EXPECT_EQ(failure(s, {Collective::all_gather, n, n, 0, 0}), "") << n;
  }
}

// On tori the better of two rules, each of which is the better one somewhere.
TEST(Trivance, BothRulesSendEveryBlockOnceOnTori) {
  for (int n = 1; n <= 40; ++n) {
    for (const int dimensions : {2, 3, 4}) {
      EXPECT_EQ(failure(trivance_line(n, dimensions), {Collective::all_gather, n, n, 0, 0}), "")
          << n << ", " << dimensions;
    }
  }
  const auto first = [](int n, int dimensions) {
    Rank to = 0;
    for_each_transfer(trivance_line(n, dimensions), 0, [&](const Transfer& t) {
      if (to == 0 && t.from.front() == 0) to = t.to.front();
    });
    return to;
  };
  EXPECT_EQ(first(16, 1), 5);
  EXPECT_EQ(first(16, 3), 9);
  EXPECT_EQ(first(32, 2), 11);
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
  EXPECT_EQ(firsts,
            (std::set<std::string>{"0:-1 x9", "0:1 x9", "1:-3 x3", "1:3 x3", "2:-9 x1", "2:9 x1",
                                   "3:9 x1", "3:-9 x1", "4:3 x3", "4:-3 x3", "5:1 x9", "5:-1 x9"}));
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
  std::vector<int> sizes = {8192, 65'536, 1'000'000};  // of which not all plans are looked at
  for (int n = 1; n <= 800; n += n < 250 ? 1 : 37) sizes.push_back(n);
  for (const int n : sizes) {
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
