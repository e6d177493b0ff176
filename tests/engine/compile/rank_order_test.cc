// Which schedules bring contributions together in the order of the ranks. That the answer is right
// is for tests/engine/api/user_op_test, which multiplies matrices by every line of the catalogue.
#include "engine/compile/versions.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "algorithms/catalogue.h"

namespace rankine {
namespace {

bool ordered(const Schedule& schedule, const Goal& goal) {
  const std::vector<std::size_t> counts(
      static_cast<std::size_t>(natural_blocks(goal.collective, goal.ranks)),
      static_cast<std::size_t>(schedule.blocks));
  const Layout layout = make_layout(goal, counts, 4, Borders::plain);
  return in_rank_order(**Versions::of(schedule, goal, layout));
}

bool ordered(Collective collective, std::string_view name, int ranks, Rank root = 0) {
  const Algorithm& line = *find_algorithm(collective, name);
  Params params;
  params.ranks = ranks;
  params.root = root;
  const Schedule schedule = line.make(params);
  return ordered(schedule, goal_of(line, params, schedule));
}

TEST(RankOrder, OfTheLinesThatDefaultsAreMadeOf) {
  for (int n = 1; n <= 33; ++n) {
    EXPECT_TRUE(ordered(Collective::all_reduce, "direct_one_shot", n)) << n;
    EXPECT_TRUE(ordered(Collective::all_reduce, "direct_two_shot", n)) << n;
    EXPECT_TRUE(ordered(Collective::reduce_scatter, "direct", n)) << n;
    for (const Rank root : {0, n / 2, n - 1}) {
      EXPECT_TRUE(ordered(Collective::reduce, "direct_two_shot", n, root)) << n;
    }
  }
}

// A ring's sums go round: that of a block begins in the middle of the ranks.
TEST(RankOrder, IsNotThatOfARing) {
  EXPECT_TRUE(ordered(Collective::all_reduce, "ring", 2));
  for (int n = 3; n <= 33; ++n) EXPECT_FALSE(ordered(Collective::all_reduce, "ring", n)) << n;
}

TEST(RankOrder, IsThatOfEveryScan) {
  for (const Algorithm& line : catalogue()) {
    if (!is_prefix(line.collective)) continue;
    for (int n = 1; n <= 33; ++n) EXPECT_TRUE(ordered(line.collective, line.name, n)) << n;
  }
}

// 0 with 2, then 1: one sum with a gap is enough.
TEST(RankOrder, SeesAGap) {
  const auto gather_at_0 = [](Rank first, Rank second) {
    return Schedule{3, 1, 2,
                    [=](int k, Send send) { send(k == 0 ? first : second, 0, block(0), reduce); }};
  };
  const Goal goal{Collective::reduce, 3, 1, 0};
  EXPECT_TRUE(ordered(gather_at_0(1, 2), goal));
  EXPECT_FALSE(ordered(gather_at_0(2, 1), goal));
}

}  // namespace
}  // namespace rankine
