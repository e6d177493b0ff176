// Single rules of the drawing; whole drawings are kept as golden files.
#include "engine/read/draw.h"

#include <gtest/gtest.h>

#include <sstream>

#include "algorithms/catalogue.h"
#include "algorithms/direct.h"
#include "algorithms/ring.h"
#include "engine/read/draw.h"
#include "tests/engine/read/listed.h"

namespace rankine {
namespace {

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST(Draw, RingAllGatherOfThree) {
  EXPECT_EQ(draw(ring_all_gather(3), {Collective::all_gather, 3, 3}),
            R"(all_gather: 3 ranks, 3 blocks, 2 rounds

  round 0   0 -0-> 1   1 -1-> 2   2 -2-> 0
  round 1   0 -2-> 1   1 -0-> 2   2 -1-> 0

          start    |  round 0  |  round 1
          0  1  2  |  0  1  2  |  0  1  2
  rank 0  o  .  .  |  o  . *o  |  o *o  o
  rank 1  .  o  .  | *o  o  .  |  o  o *o
  rank 2  .  .  o  |  . *o  o  | *o  o  o

-b-> copies block b   * written in this round   o held
)");
}

TEST(Draw, SumsAreSetsOfRanks) {
  const auto add = [](std::vector<Rank> from, Rank to) {
    RankSet set;
    for (const Rank r : from) set.append(IndexList(r));
    return transfer(set, to, block(0), reduce);
  };
  const Goal goal = {Collective::all_reduce, 8, 1};
  const std::string text = draw(
      listed(8, 1, {{add({3}, 0), add({2, 3}, 1), add({6, 7}, 0), add({4, 6}, 2), add({0}, 7)}}),
      goal);
  EXPECT_TRUE(has_line(text, "  rank 0  0        | *0+3+6+7")) << text;
  EXPECT_TRUE(has_line(text, "  rank 1  1        | *1..3")) << text;
  EXPECT_TRUE(has_line(text, "  rank 2  2        | *2..6/2")) << text;
  EXPECT_TRUE(has_line(text, "  rank 7  7        | *7+0")) << text;
  EXPECT_TRUE(has_line(text, "  rank 3  3        |  3")) << text;
}

TEST(Draw, ArrowsOfAKindAreOne) {
  const Goal goal = {Collective::all_reduce, 4, 1};
  const auto first_round = [&](std::vector<Transfer> transfers) {
    const std::string text = draw(listed(4, 1, {std::move(transfers)}), goal);
    const std::size_t at = text.find("round 0   ") + 10;
    return text.substr(at, text.find('\n', at) - at);
  };
  const auto one = [](Rank from, Rank to, Act act) { return transfer(from, to, block(0), act); };
  EXPECT_EQ(first_round({one(0, 1, copy), one(0, 2, copy), one(0, 3, copy)}), "0 -0-> 1..3");
  EXPECT_EQ(first_round({one(1, 0, reduce), one(3, 0, reduce)}), "1,3 -+0-> 0");
  EXPECT_EQ(first_round({one(3, 1, reduce), one(0, 2, reduce), one(2, 0, reduce)}),
            "0 <-+0-> 2   3 -+0-> 1");
  EXPECT_EQ(first_round({transfer(0, ranks_from(1, 3), block(0), copy)}), "0 =0=> 1..3");
  EXPECT_EQ(first_round({transfer(ranks_from(1, 3), 0, block(0), reduce)}), "1..3 =+0=> 0");
  EXPECT_EQ(first_round({}), "nothing");
}

TEST(Draw, PlanesAndLocalWork) {
  const Schedule schedule = {3,
                             1,
                             2,
                             [](int k, Send send) {
                               for (Rank r : ranks(3)) {
                                 if (k == 0) send(r, r + 1, block(0), block(0, 1), copy);
                                 if (k == 1) send(r, r, block(0, 1), block(0), reduce);
                               }
                             },
                             {},
                             2};
  const std::string text = draw(schedule, {Collective::all_reduce, 3, 1});
  EXPECT_TRUE(has_line(text, "  round 0   0 -0:0'-> 1   1 -0:0'-> 2   2 -0:0'-> 0")) << text;
  EXPECT_TRUE(has_line(text, "  round 1   at 0..2: 0 += 0'")) << text;
  EXPECT_TRUE(has_line(text, "  rank 0  0    .    |  0   *2    | *2+0  2")) << text;
}

TEST(Draw, AllToAllShowsRoutes) {
  const int p = 4;
  const Schedule schedule = {p, p * p, p - 1, [](int k, Send send) {
                               for (Rank r : ranks(4)) {
                                 send(r, r + k + 1, block(r * 4 + (r + k + 1) % 4), copy);
                               }
                             }};
  const std::string text = draw(schedule, {Collective::all_to_all, p, p * p});
  EXPECT_TRUE(has_line(text, "  round 0   0 --> 1   1 --> 2   2 --> 3   3 --> 0")) << text;
  EXPECT_TRUE(has_line(text, "  round 1   0 <--> 2   1 <--> 3")) << text;
  EXPECT_TRUE(has_line(text,
                       "  rank 0  0         0>1..3   | *3,0       0>2,3    | *2..0      0>3      | "
                       "*all       ."))
      << text;
}

TEST(Draw, ShowsWhatAWrongScheduleDoes) {
  const TransferList twice = {{transfer(0, 1, block(0), reduce)},
                              {transfer(0, 1, block(0), reduce)}};
  const Goal goal = {Collective::all_reduce, 3, 1};
  EXPECT_TRUE(has_line(draw(listed(3, 1, twice), goal), "  rank 1  1        | *0+1      | *0+0+1"));
  const Goal broadcast = {Collective::broadcast, 3, 1};
  EXPECT_TRUE(has_line(draw(listed(3, 1, {{transfer(1, 2, block(0), copy)}}), broadcast),
                       "  rank 2  .        |  ."));
  EXPECT_FALSE(draw(listed(3, 1, {{transfer(0, 7, block(9), copy)}}), broadcast).empty());
}

TEST(Draw, KeepsToTheWidthAndLeavesNoSpacesBehind) {
  for (const Algorithm& line : catalogue()) {
    for (const int n : {1, 2, 4, 5, 8}) {
      Params params;
      params.ranks = n;
      params.segments = line.takes("segments") ? 2 : 1;
      if (line.refusal(params)) continue;
      const Schedule schedule = line.make(params);
      const Goal goal = goal_of(line, params, schedule);
      DrawOptions options;
      options.width = 120;
      std::istringstream text(draw(schedule, goal, options));
      for (std::string row; std::getline(text, row);) {
        EXPECT_FALSE(row.ends_with(' ')) << line.name << " N=" << n << ": '" << row << "'";
        EXPECT_LE(row.size(), 120u) << name_of(line.collective) << " " << line.name << " N=" << n;
      }
    }
  }
}

TEST(Draw, ColourChangesNothingElse) {
  const Goal goal = {Collective::all_reduce, 5, 5};
  const Schedule schedule = ring_all_reduce(5);
  const std::string plain = draw(schedule, goal);
  DrawOptions options;
  options.colour = true;
  std::string coloured = draw(schedule, goal, options), uncoloured;
  EXPECT_NE(coloured, plain);
  for (std::size_t i = 0; i < coloured.size(); ++i) {
    if (coloured[i] == '\x1b') {
      i = coloured.find('m', i);
    } else {
      uncoloured += coloured[i];
    }
  }
  EXPECT_EQ(uncoloured, plain);
}

TEST(Draw, Utf8) {
  const Goal goal = {Collective::all_reduce, 5, 5};
  const Schedule schedule = ring_all_reduce(5);
  DrawOptions options;
  options.utf8 = true;
  EXPECT_NE(draw(schedule, goal, options).find("0 ─+1→ 4"), std::string::npos);
}

TEST(ViewRounds, ForMachines) {
  const std::vector<RoundView> views =
      view_rounds(direct_all_reduce_two_shot(3), {Collective::all_reduce, 3, 3});
  ASSERT_EQ(views.size(), 3u);
  EXPECT_EQ(views[0].round, -1);
  EXPECT_TRUE(views[0].transfers.empty());
  EXPECT_EQ(views[1].phase, "reduce-scatter");
  EXPECT_EQ(views[2].phase, "all-gather");
  ASSERT_EQ(views[1].transfers.size(), 6u);
  EXPECT_EQ(views[1].transfers[0].from, std::vector<Rank>{1});
  EXPECT_EQ(views[1].transfers[0].to, std::vector<Rank>{0});
  EXPECT_EQ(views[1].transfers[0].act, Act::reduce);
  ASSERT_EQ(views[1].ranks.size(), 3u);
  ASSERT_EQ(views[1].ranks[0].size(), 3u);
  const HoldingView& mine = views[1].ranks[0][0];
  EXPECT_EQ(mine.contributions, (std::vector<Rank>{0, 1, 2}));
  EXPECT_TRUE(mine.complete && mine.needed && mine.written);
  const HoldingView& other = views[1].ranks[0][1];
  EXPECT_EQ(other.contributions, std::vector<Rank>{0});
  EXPECT_FALSE(other.complete || other.written);
}

}  // namespace
}  // namespace rankine
