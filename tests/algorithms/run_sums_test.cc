#include "algorithms/run_sums.h"

#include <gtest/gtest.h>

#include "algorithms/bruck.h"
#include "algorithms/trivance.h"
#include "tests/algorithms/reference.h"

namespace rankine {
namespace {

constexpr RunParts kLeft{true, false, false}, kOwn{false, true, false}, kRight{false, false, true},
    kAll{true, true, true};

TEST(RunSums, AMessageBeginsWhereTheRunEnds) {
  const Runs runs{4, 2};  // r - 4 ... r + 2
  EXPECT_EQ(message_from_left(runs, runs, kAll).distance, 4 + 1 + 2);
  EXPECT_EQ(message_from_left(runs, runs, kOwn).distance, 4 + 1);
  EXPECT_EQ(message_from_left(runs, runs, kLeft).distance, 4);
  EXPECT_EQ(message_from_right(runs, runs, kAll).distance, -(2 + 1 + 4));
  EXPECT_EQ(message_from_right(runs, runs, kRight).distance, -2);
  EXPECT_EQ(message_from_right(runs, {4, 9}, kOwn).distance, -10);
}

TEST(RunSums, PowersOfThreeNeedOneVectorOnly) {
  for (const int n : {3, 9, 27, 81}) {
    EXPECT_EQ(run_sums_all_reduce(n, trivance_plan(n)).planes, 1) << n;
    EXPECT_EQ(run_sums_all_reduce(n, bruck_ternary_plan(n)).planes, 1) << n;
  }
  EXPECT_GT(run_sums_all_reduce(7, trivance_plan(7)).planes, 1);
}

// With whole sums only, as the paper's section 4.4 has it, others than powers of three count
// somebody twice; with partial sums nobody.
TEST(RunSums, WholeSumsCountTwice) {
  for (const int n : {5, 7, 8, 10, 32}) {
    const int s = ceil_log3(n), last = (n - power_of_three(s - 1) + 1) / 2;
    const Schedule whole{n, 1, s, [n, s, last](int k, Send send) {
                           const int d = k + 1 < s ? power_of_three(k) : last;
                           for (Rank r : ranks(n)) {
                             send(r, r + d, block(0), reduce);
                             send(r, r - d, block(0), reduce);
                           }
                         }};
    const Goal goal{Collective::all_reduce, n, 1, 0, 0};
    EXPECT_NE(failure(whole, goal), "") << n;
    EXPECT_EQ(failure(trivance_latency_line(n), goal), "") << n;
  }
}

TEST(RunSums, EveryPlanGivesTheRightNumbers) {
  for (int n = 1; n <= 130; ++n) {
    const Goal goal{Collective::all_reduce, n, 1, 0, 0};
    EXPECT_EQ(failure(trivance_latency_line(n), goal), "") << "trivance " << n;
    EXPECT_EQ(failure(bruck_ternary_latency_line(n), goal), "") << "bruck " << n;
  }
}

}  // namespace
}  // namespace rankine
