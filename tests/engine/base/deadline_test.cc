// Durations that end where 63 bits of nanoseconds do.
#include "engine/base/numbers.h"

#include <gtest/gtest.h>

namespace rankine {
namespace {

using std::chrono::milliseconds;

TEST(Deadline, DurationsAreExactOrForEver) {
  EXPECT_EQ(saturated_ns(milliseconds(0)), 0);
  EXPECT_EQ(saturated_ns(milliseconds(-5)), -5'000'000);
  EXPECT_EQ(saturated_ns(milliseconds(30'000)), 30'000'000'000);
  const milliseconds most(kForEverNs / 1'000'000);
  EXPECT_EQ(saturated_ns(most), kForEverNs / 1'000'000 * 1'000'000);
  EXPECT_EQ(saturated_ns(most + milliseconds(1)), kForEverNs);
  EXPECT_EQ(saturated_ns(milliseconds::max()), kForEverNs);
  EXPECT_LT(saturated_ns(milliseconds::min()), -kForEverNs / 2);
  EXPECT_EQ(saturated_ns(1.5e9), 1'500'000'000);
  EXPECT_EQ(saturated_ns(1e30), kForEverNs);
}

TEST(Deadline, LiesNeverBeforeNow) {
  EXPECT_EQ(deadline_after(17, 3), 20);
  EXPECT_EQ(deadline_after(17, -3), 14);
  EXPECT_EQ(deadline_after(17, kForEverNs), kForEverNs);
  EXPECT_EQ(deadline_after(17, kForEverNs - 17), kForEverNs);
  EXPECT_EQ(deadline_after(17, kForEverNs - 18), kForEverNs - 1);
  EXPECT_EQ(deadline_after(kForEverNs, 1), kForEverNs);
}

}  // namespace
}  // namespace rankine
