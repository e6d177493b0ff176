#include "algorithms/schedule/collective.h"

#include <gtest/gtest.h>

#include <string>

namespace rankine {
namespace {

// One row per rank, one column per block: what is there before, and what is needed after.
std::string table(const Goal& goal, bool before) {
  std::string out;
  for (Rank r = 0; r < goal.ranks; ++r) {
    for (Block b = 0; b < goal.blocks; ++b) {
      out += (before ? goal.starts(r, b) : goal.needs(r, b)) ? '#' : '.';
    }
    out += r + 1 < goal.ranks ? "/" : "";
  }
  return out;
}

TEST(Collective, NamesReadBack) {
  for (const Collective c : all_collectives()) {
    EXPECT_EQ(parse_collective(name_of(c)), c);
  }
  EXPECT_EQ(all_collectives().size(), static_cast<std::size_t>(kCollectives));
  EXPECT_EQ(parse_collective("all_reduce"), Collective::all_reduce);
  EXPECT_EQ(parse_collective("allreduce"), std::nullopt);
  EXPECT_EQ(parse_collective(""), std::nullopt);
}

// The primitives of the lesson's table, among three ranks.
TEST(Goal, SaysWhoHasWhatBeforeAndAfter) {
  struct {
    Collective collective;
    int blocks;
    const char *before, *after;
  } const cases[] = {
      {Collective::broadcast, 1, "./#/.", "#/#/#"},
      {Collective::reduce, 1, "#/#/#", "./#/."},
      {Collective::all_reduce, 1, "#/#/#", "#/#/#"},
      {Collective::reduce_scatter, 3, "###/###/###", "#../.#./..#"},
      {Collective::all_gather, 3, "#../.#./..#", "###/###/###"},
      {Collective::all_to_all, 9, "###....../...###.../......###", "#..#..#../.#..#..#./..#..#..#"},
      {Collective::gather, 3, "#../.#./..#", ".../###/..."},
      {Collective::scatter, 3, ".../###/...", "#../.#./..#"},
      {Collective::send_recv, 1, "./#/.", "././#"},
      {Collective::barrier, 1, "#/#/#", "#/#/#"},
      {Collective::scan, 1, "#/#/#", "#/#/#"},
      {Collective::exscan, 1, "#/#/#", "./#/#"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(natural_blocks(c.collective, 3), c.blocks) << name_of(c.collective);
    const Goal goal{c.collective, 3, c.blocks, 1, 2};
    EXPECT_EQ(table(goal, true), c.before) << name_of(c.collective);
    EXPECT_EQ(table(goal, false), c.after) << name_of(c.collective);
  }
}

// One row per rank: whom it wants to hear of block 0.
TEST(Goal, SaysWhoWantsToHearWhom) {
  const auto heard = [](Collective collective) {
    const Goal goal{collective, 3, natural_blocks(collective, 3), 1, 2};
    std::string out;
    for (Rank r = 0; r < 3; ++r) {
      for (Rank c = 0; c < 3; ++c) out += goal.wants(r, 0, c) ? '#' : '.';
      out += r < 2 ? "/" : "";
    }
    return out;
  };
  EXPECT_EQ(heard(Collective::broadcast), ".#./.#./.#.");
  EXPECT_EQ(heard(Collective::reduce), ".../###/...");
  EXPECT_EQ(heard(Collective::all_reduce), "###/###/###");
  EXPECT_EQ(heard(Collective::reduce_scatter), "###/.../...");
  EXPECT_EQ(heard(Collective::all_gather), "#../#../#..");
  EXPECT_EQ(heard(Collective::scan), "#../##./###");
  EXPECT_EQ(heard(Collective::exscan), ".../#../##.");
}

TEST(Goal, PartsOfABlockAreNeighbours) {
  const Goal goal{Collective::all_gather, 2, 6, 0, 0};
  EXPECT_EQ(table(goal, true), "###.../...###");
}

TEST(Collective, KnowsItsArguments) {
  for (const Collective c : all_collectives()) {
    const Goal goal{c, 4, natural_blocks(c, 4), 0, 1}, other{c, 4, natural_blocks(c, 4), 2, 1};
    const bool differ =
        table(goal, true) != table(other, true) || table(goal, false) != table(other, false);
    EXPECT_EQ(has_root(c), differ) << name_of(c);
    EXPECT_EQ(is_idempotent(c), c == Collective::barrier);
    const bool sums = goal.source_of(0) == -1 && !is_idempotent(c);
    EXPECT_EQ(reduces(c), sums) << name_of(c);
  }
}

}  // namespace
}  // namespace rankine
