#include "engine/base/statistics.h"

#include <gtest/gtest.h>

namespace rankine {
namespace {

TEST(Statistics, AreWhatTheirNamesSay) {
  const std::vector<double> values = {5, 1, 4, 2, 3, 100, 6, 7, 8};
  EXPECT_DOUBLE_EQ(median(values), 5);
  EXPECT_DOUBLE_EQ(percentile_99(values), 100);
  EXPECT_DOUBLE_EQ(quantile(values, 0.25), 3);
  EXPECT_DOUBLE_EQ(relative_spread(values), 0.4);
  EXPECT_DOUBLE_EQ(middle_mean(values), 5);
  EXPECT_DOUBLE_EQ(median({}), 0);
}

TEST(Statistics, OfFewAndMany) {
  EXPECT_EQ(summarise({}).samples, 0U);
  const Statistics three = summarise({3, 1, 2});
  EXPECT_EQ(three.min, 1);
  EXPECT_EQ(three.median, 2);
  EXPECT_EQ(three.p99, 3);
  EXPECT_EQ(three.max, 3);
  EXPECT_DOUBLE_EQ(three.mean, 2);
  EXPECT_DOUBLE_EQ(three.deviation, 1);
  EXPECT_DOUBLE_EQ(summarise({1, 2, 3, 4}).median, 2.5);
  std::vector<double> many;
  for (int i = 1; i <= 1000; ++i) many.push_back(i);
  EXPECT_EQ(summarise(many).p99, 990);
}

}  // namespace
}  // namespace rankine
