// In which brackets schedules add up. That the bits are right is for tests/engine/api/order_test,
// which compares those of calls with loops of its own.
#include "engine/compile/versions.h"

#include <gtest/gtest.h>

#include <vector>

#include "algorithms/catalogue.h"

namespace rankine {
namespace {

Brackets brackets(const Schedule& schedule, const Goal& goal) {
  const std::vector<std::size_t> counts(
      static_cast<std::size_t>(natural_blocks(goal.collective, goal.ranks)),
      static_cast<std::size_t>(schedule.blocks));
  const Layout layout = make_layout(goal, counts, 4, Borders::plain);
  return brackets_of(**Versions::of(schedule, goal, layout));
}

Brackets brackets(Collective collective, std::string_view name, int ranks) {
  const Algorithm& line = *find_algorithm(collective, name);
  Params params;
  params.ranks = ranks;
  const Schedule schedule = line.make(params);
  return brackets(schedule, goal_of(line, params, schedule));
}

TEST(Brackets, OfTheLinesThatTheLevelsAreMadeOf) {
  for (int n = 1; n <= 33; ++n) {
    EXPECT_TRUE(brackets(Collective::all_reduce, "direct_one_shot", n).flat) << n;
    EXPECT_TRUE(brackets(Collective::all_reduce, "direct_two_shot", n).flat) << n;
    EXPECT_TRUE(brackets(Collective::reduce, "direct_two_shot", n).flat) << n;
    EXPECT_TRUE(brackets(Collective::reduce_scatter, "direct", n).flat) << n;
    EXPECT_TRUE(brackets(Collective::scan, "direct", n).flat) << n;
    EXPECT_TRUE(brackets(Collective::exscan, "direct", n).flat) << n;
    EXPECT_TRUE(brackets(Collective::all_reduce, "binomial_far", n).canonical) << n;
    EXPECT_TRUE(brackets(Collective::reduce, "binomial_far", n).canonical) << n;
    if (is_power_of_two(n)) {
      EXPECT_TRUE(brackets(Collective::all_reduce, "recursive_doubling", n).canonical) << n;
      EXPECT_TRUE(brackets(Collective::all_reduce, "halving_doubling", n).canonical) << n;
    }
  }
}

// Of more than two ranks a sum has one of the forms at most.
TEST(Brackets, OfEveryLineOfTheCatalogue) {
  for (const Algorithm& line : catalogue()) {
    if (!reduces(line.collective)) continue;
    for (int n = 2; n <= 17; ++n) {
      Params params;
      params.ranks = n;
      if (line.refusal(line.only_taken(params))) continue;
      const Brackets found = brackets(line.collective, line.name, n);
      const int added = line.collective == Collective::exscan ? n - 1 : n;  // at most
      EXPECT_EQ(found.flat && found.canonical, added <= 2) << line.name << " N=" << n;
    }
  }
}

TEST(Brackets, NeitherOfARingNorOfFarHalving) {
  for (int n = 3; n <= 17; ++n) {
    const Brackets ring = brackets(Collective::all_reduce, "ring", n);
    EXPECT_FALSE(ring.flat || ring.canonical) << n;
    const Brackets far = brackets(Collective::all_reduce, "halving_doubling_far", n);
    EXPECT_FALSE(far.flat) << n;
    EXPECT_FALSE(far.canonical && n > 3) << n;
  }
}

// Sums at rank 0 of three: cut after the first rank, after the second, not at all.
TEST(Brackets, SeeWhereARunIsCut) {
  const Goal goal{Collective::reduce, 3, 1, 0};
  const Schedule high_first{
      3, 1, 2, [](int k, Send send) { send(k == 0 ? 2 : 1, k == 0 ? 1 : 0, block(0), reduce); }};
  const Schedule low_first{3, 1, 2, [](int k, Send send) { send(k + 1, 0, block(0), reduce); }};
  const Schedule at_once{3, 1, 1, [](int, Send send) {
                           send(1, 0, block(0), reduce);
                           send(2, 0, block(0), reduce);
                         }};
  EXPECT_FALSE(brackets(high_first, goal).canonical || brackets(high_first, goal).flat);
  EXPECT_TRUE(brackets(low_first, goal).canonical);
  EXPECT_FALSE(brackets(low_first, goal).flat);
  EXPECT_TRUE(brackets(at_once, goal).flat);
  EXPECT_FALSE(brackets(at_once, goal).canonical);
}

}  // namespace
}  // namespace rankine
