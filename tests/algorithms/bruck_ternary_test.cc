#include "algorithms/bruck.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/algorithms/reference.h"

namespace rankine {
namespace {

std::set<int> ways(const Schedule& s, int k) {
  std::set<int> out;
  for_each_transfer(s, k, [&](const Transfer& t) {
    out.insert((t.to.front() - t.from.front() + s.ranks) % s.ranks);
  });
  return out;
}

TEST(BruckTernary, SendsAtThreeToTheKAndTwiceThat) {
  const Schedule s = bruck_ternary_all_reduce({27});
  const std::vector<std::set<int>> expected = {{1, 2},  {3, 6}, {9, 18},
                                               {9, 18}, {3, 6}, {1, 2}};
  ASSERT_EQ(s.rounds, 6);
  for (int k = 0; k < 6; ++k) EXPECT_EQ(ways(s, k), expected[static_cast<std::size_t>(k)]) << k;
}

TEST(BruckTernary, LatencyOptimalFormSendsOneWayOnly) {
  for (const int n : {5, 9, 26, 27, 28, 80}) {
    for (const auto& round : bruck_ternary_plan(n)) {
      for (const RunMessage& message : round) EXPECT_GT(message.distance, 0) << n;
    }
  }
  const RunPlan plan = bruck_ternary_plan(9);
  ASSERT_EQ(plan.size(), 2u);
  EXPECT_EQ(plan[1][0].distance, 3);
  EXPECT_EQ(plan[1][1].distance, 6);
}

TEST(BruckTernary, GivesTheRightNumbersOnTori) {
  for (const std::vector<int>& dims : std::vector<std::vector<int>>{
           {1}, {2}, {3}, {8}, {26}, {3, 5}, {4, 4}, {2, 3, 4}, {3, 3, 3}}) {
    const int n = Torus(dims).ranks();
    SCOPED_TRACE(dims_text(dims));
    for (const auto& make : {bruck_ternary_all_reduce, bruck_ternary_latency_all_reduce}) {
      const Schedule s = make(dims);
      EXPECT_EQ(failure(s, {Collective::all_reduce, n, s.blocks, 0, 0}), "");
    }
  }
}

}  // namespace
}  // namespace rankine
