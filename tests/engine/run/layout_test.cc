#include "engine/run/plan.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

namespace rankine {
namespace {

using Counts = std::vector<std::size_t>;

Goal goal_for(Collective collective, int ranks, int parts = 1) {
  return {collective, ranks, natural_blocks(collective, ranks) * parts, ranks - 1, 0};
}

std::vector<std::size_t> sizes(const Layout& layout) {
  std::vector<std::size_t> all;
  for (const BlockHome& block : layout.blocks) all.push_back(block.bytes);
  return all;
}

TEST(Layout, PlainPartsDifferByOneElementAndTheFirstAreLarger) {
  const Counts counts = {11};
  const Layout layout =
      make_layout(goal_for(Collective::all_reduce, 4, 4), counts, 4, Borders::plain);
  EXPECT_EQ(sizes(layout), (Counts{12, 12, 12, 8}));
  EXPECT_EQ(layout.blocks[0].input, 0U);
  EXPECT_EQ(layout.blocks[3].input, 36U);
  EXPECT_EQ(layout.blocks[3].output, 36U);
}

TEST(Layout, FewerElementsThanPartsLeaveEmptyParts) {
  const Counts counts = {2};
  const Layout layout =
      make_layout(goal_for(Collective::all_reduce, 5, 5), counts, 8, Borders::plain);
  EXPECT_EQ(sizes(layout), (Counts{8, 8, 0, 0, 0}));
  const Counts nothing = {0};
  EXPECT_EQ(sizes(make_layout(goal_for(Collective::all_reduce, 2, 2), nothing, 8, Borders::plain)),
            (Counts{0, 0}));
}

TEST(Layout, BordersOnLinesCutNoLine) {
  for (const std::size_t element :
       {std::size_t{1}, std::size_t{2}, std::size_t{4}, std::size_t{8}}) {
    for (const std::size_t count : {1U, 15U, 16U, 17U, 64U, 1000U, 4096U}) {
      for (const int parts : {1, 2, 3, 7, 16}) {
        const Counts counts = {count};
        const Layout layout = make_layout(goal_for(Collective::all_reduce, 3, parts), counts,
                                          element, Borders::cache_lines);
        std::size_t end = 0;
        for (const BlockHome& block : layout.blocks) {
          EXPECT_EQ(block.input, end);
          EXPECT_EQ(block.output, end);
          if (block.bytes > 0) {
            EXPECT_EQ(block.input % 64, 0U);
          }
          end += block.bytes;
        }
        EXPECT_EQ(end, count * element);
        // Lines are shared out like elements: the largest part has at most one line more.
        const std::size_t lines = (count * element + 63) / 64;
        const auto n = static_cast<std::size_t>(parts);
        EXPECT_LE(layout.blocks[0].bytes, (lines + n - 1) / n * 64);
      }
    }
  }
}

TEST(Layout, PartsOfUnequalNaturalBlocks) {
  const Counts counts = {5, 0, 3};
  const Layout layout =
      make_layout(goal_for(Collective::all_gather, 3, 2), counts, 4, Borders::plain);
  EXPECT_EQ(sizes(layout), (Counts{12, 8, 0, 0, 8, 4}));
  // Every rank's input holds its own block only; outputs hold all, one after the other.
  EXPECT_EQ(layout.blocks[4].input, 0U);
  EXPECT_EQ(layout.blocks[5].input, 8U);
  EXPECT_EQ(layout.blocks[4].output, 20U);
  EXPECT_EQ(layout.blocks[5].output, 28U);
}

// For every collective: at each rank, the blocks of its input follow one another without gaps, and
// so do those of its output; a block's offset is the same wherever it is.
TEST(Layout, BuffersHaveNoGapsAndNoOverlaps) {
  for (const Collective collective : all_collectives()) {
    for (const int ranks : {1, 2, 3, 5}) {
      for (const int parts : {1, 3}) {
        const Goal goal = goal_for(collective, ranks, parts);
        Counts counts(static_cast<std::size_t>(natural_blocks(collective, ranks)));
        for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = i * 5 % 7;
        const Layout layout = make_layout(goal, counts, 4, Borders::plain);
        ASSERT_EQ(layout.blocks.size(), static_cast<std::size_t>(goal.blocks));
        for (Rank r = 0; r < ranks; ++r) {
          std::size_t in = 0, out = 0;
          for (Block b = 0; b < goal.blocks; ++b) {
            const BlockHome& block = layout.blocks[static_cast<std::size_t>(b)];
            if (goal.starts(r, b)) {
              EXPECT_EQ(block.input, in) << name_of(collective) << " rank " << r << " block " << b;
              in += block.bytes;
            }
            if (goal.needs(r, b)) {
              EXPECT_EQ(block.output, out)
                  << name_of(collective) << " rank " << r << " block " << b;
              out += block.bytes;
            }
          }
          EXPECT_EQ(input_bytes(layout, goal, r), in);
          EXPECT_EQ(output_bytes(layout, goal, r), out);
        }
      }
    }
  }
}

TEST(Layout, SizesOfBuffers) {
  const auto bytes = [](Collective collective, Rank r) {
    const Goal goal = goal_for(collective, 3);  // the root is rank 2
    Counts counts(static_cast<std::size_t>(natural_blocks(collective, 3)), 10);
    const Layout layout = make_layout(goal, counts, 1, Borders::plain);
    return std::pair(input_bytes(layout, goal, r), output_bytes(layout, goal, r));
  };
  using enum Collective;
  using Pair = std::pair<std::size_t, std::size_t>;
  EXPECT_EQ(bytes(all_reduce, 0), Pair(10, 10));
  EXPECT_EQ(bytes(all_gather, 0), Pair(10, 30));
  EXPECT_EQ(bytes(reduce_scatter, 0), Pair(30, 10));
  EXPECT_EQ(bytes(all_to_all, 0), Pair(30, 30));
  EXPECT_EQ(bytes(broadcast, 0), Pair(0, 10));
  EXPECT_EQ(bytes(broadcast, 2), Pair(10, 10));
  EXPECT_EQ(bytes(Collective::reduce, 0), Pair(10, 0));
  EXPECT_EQ(bytes(Collective::reduce, 2), Pair(10, 10));
  EXPECT_EQ(bytes(gather, 0), Pair(10, 0));
  EXPECT_EQ(bytes(gather, 2), Pair(10, 30));
  EXPECT_EQ(bytes(scatter, 0), Pair(0, 10));
  EXPECT_EQ(bytes(scatter, 2), Pair(30, 10));
  EXPECT_EQ(bytes(send_recv, 2), Pair(10, 0));
  EXPECT_EQ(bytes(send_recv, 0), Pair(0, 10));
  EXPECT_EQ(bytes(send_recv, 1), Pair(0, 0));
}

}  // namespace
}  // namespace rankine
