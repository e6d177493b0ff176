#include "engine/tools/cost_search.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <string>
#include <vector>

namespace rankine::tools {
namespace {

// The second form is faster from 4096 on, by a factor.
std::vector<FormTimes> crossing_at_4096(double factor) {
  std::vector<FormTimes> sizes;
  for (std::size_t bytes = 256; bytes <= 65536; bytes *= 2) {
    const double time = static_cast<double>(bytes);
    sizes.push_back({bytes, bytes < 4096 ? time : factor * time,
                     bytes < 4096 ? factor * time : time});
  }
  return sizes;
}

TEST(BestBorder, IsWhereTheOtherFormBecomesFaster) {
  for (const std::size_t before :
       {std::size_t{0}, std::size_t{300}, std::size_t{1} << 30}) {
    const Border border = best_border(crossing_at_4096(2), before);
    EXPECT_GE(border.value, 2048U) << before;
    EXPECT_LT(border.value, 4096U) << before;
    EXPECT_GT(border.gain, 1) << before;
  }
}

TEST(BestBorder, GainIsTheGeometricMeanOverAllSizes) {
  // Of nine sizes the five from 4096 on take half the time.
  EXPECT_NEAR(best_border(crossing_at_4096(2), std::size_t{1} << 30).gain,
              std::pow(2, 5.0 / 9), 1e-12);
}

TEST(BestBorder, StaysWhereItIsAsGoodAsAny) {
  for (const std::size_t before :
       {std::size_t{2048}, std::size_t{3000}, std::size_t{4095}}) {
    const Border border = best_border(crossing_at_4096(2), before);
    EXPECT_EQ(border.value, before);
    EXPECT_EQ(border.gain, 1);
  }
  EXPECT_EQ(best_border(crossing_at_4096(1), 77).value, 77U);
}

TEST(BestBorder, MayLieBeforeTheFirstSizeAndBeyondTheLast) {
  std::vector<FormTimes> sizes = {{64, 2, 1}, {128, 2, 1}};
  EXPECT_EQ(best_border(sizes, 128).value, 63U);
  sizes = {{64, 1, 2}, {128, 1, 2}};
  EXPECT_EQ(best_border(sizes, 0).value, 128U);
}

TEST(CostSearch, FindsNothingInNoTime) {
  int asked = 0;
  const auto found = search_costs(
      {}, 2,
      {.deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1),
       .progress = [&](std::string_view) { ++asked; }});
  ASSERT_TRUE(found.ok()) << found.status().text();
  EXPECT_TRUE(found->empty());
  EXPECT_EQ(asked, 0);
}

// All fields that can be tried among so many ranks: each finding stays or
// gains, within what is allowed.
TEST(CostSearch, TriesEveryFormThatThereIs) {
  std::vector<std::string> asked;
  const auto found = search_costs(
      {}, 2,
      {.deadline = std::chrono::steady_clock::now() + std::chrono::hours(1),
       .rounds = 1,
       .progress = [&](std::string_view field) { asked.emplace_back(field); }});
  ASSERT_TRUE(found.ok()) << found.status().text();
  ASSERT_EQ(found->size(), asked.size());
  EXPECT_GE(found->size(), 6U);
  for (const CostFinding &finding : *found) {
    EXPECT_EQ(finding.before, Costs{}.*finding.field->value)
        << finding.field->name;
    EXPECT_GE(finding.after, finding.field->least) << finding.field->name;
    EXPECT_LE(finding.after, finding.field->most) << finding.field->name;
    EXPECT_EQ(finding.after == finding.before, finding.gain == 1)
        << finding.field->name;
    EXPECT_FALSE(finding.sizes.empty()) << finding.field->name;
    for (const FormTimes &size : finding.sizes) {
      EXPECT_GT(size.first, 0);
      EXPECT_GT(size.second, 0);
    }
  }
}

} // namespace
} // namespace rankine::tools
