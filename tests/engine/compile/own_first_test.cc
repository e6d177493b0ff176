// Which operations are split, and how. That results stay is the fuzz test's business.
#include "engine/compile/direct_passes.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "algorithms/direct.h"
#include "algorithms/recursive_doubling.h"
#include "algorithms/ring.h"

namespace rankine {
namespace {

Program program_of(const Schedule& schedule, Buffers buffers, std::size_t bytes) {
  const Goal goal{Collective::all_reduce, schedule.ranks, schedule.blocks};
  const std::vector<std::size_t> counts = {bytes / 4};
  auto program =
      make_program(schedule, goal, make_layout(goal, counts, 4, Borders::plain), buffers);
  program.status().throw_if_error();
  return own_first(*program, buffers);
}

struct Step {
  std::size_t begin, bytes;
  int sources;
  bool operator==(const Step&) const = default;
};
void PrintTo(const Step& s, std::ostream* out) {
  *out << s.bytes << " bytes from " << s.begin << " of " << s.sources;
}

std::vector<Step> steps_of(const Program& program, Rank r) {
  std::vector<Step> steps;
  for (const Operation& op : program.operations) {
    if (op.rank == r) steps.push_back({op.destination.offset, op.bytes, op.sources});
  }
  return steps;
}

TEST(OwnFirst, OneShotCopiesItsOwnButForOnePart) {
  const Program two = program_of(direct_all_reduce_one_shot(2), Buffers::apart, 8192);
  EXPECT_EQ(steps_of(two, 0), (std::vector<Step>{{4096, 4096, 1}, {0, 4096, 2}, {4096, 4096, 2}}));
  EXPECT_EQ(steps_of(two, 1), (std::vector<Step>{{0, 4096, 1}, {4096, 4096, 2}, {0, 4096, 2}}));
  // Parts begin on cache lines, and everything is there once.
  const Program three = program_of(direct_all_reduce_one_shot(3), Buffers::apart, 10'004);
  EXPECT_EQ(steps_of(three, 1),
            (std::vector<Step>{
                {6656, 3348, 1}, {0, 3328, 1}, {3328, 3328, 3}, {6656, 3348, 3}, {0, 3328, 3}}));
}

TEST(OwnFirst, OnlyTheLastStepOfAByteCompletesIt) {
  const Program program = program_of(direct_all_reduce_one_shot(2), Buffers::apart, 8192);
  for (const Operation& op : program.operations) EXPECT_EQ(op.completes, op.sources > 1);
}

TEST(OwnFirst, WhatIsAddedToIsTheCopyMadeBefore) {
  const Program program = program_of(direct_all_reduce_one_shot(2), Buffers::apart, 8192);
  for (const Operation& op : program.operations) {
    // The own one keeps its place in the order of additions.
    const int number = op.sources > 1 ? op.rank : 0;
    const Source& own = program.sources[static_cast<std::size_t>(op.first_source + number)];
    EXPECT_EQ(own.rank, op.rank);
    if (own.place.memory == Memory::input) continue;
    EXPECT_EQ(own.place, op.destination);
    ASSERT_GE(own.producer, 0);
    EXPECT_EQ(program.operations[static_cast<std::size_t>(own.producer)].destination,
              op.destination);
  }
}

TEST(OwnFirst, WithoutContentionNothingIsSplit) {
  const auto most_per_rank = [](const Schedule& schedule, Buffers buffers, std::size_t bytes) {
    return steps_of(program_of(schedule, buffers, bytes), 0).size();
  };
  // Nobody else reads one's own part.
  EXPECT_EQ(most_per_rank(direct_all_reduce_two_shot(2), Buffers::apart, 1 << 20), 2U);
  EXPECT_EQ(most_per_rank(ring_all_reduce(4), Buffers::apart, 1 << 20), 6U);
  // Too small to be worth it.
  EXPECT_EQ(most_per_rank(direct_all_reduce_one_shot(2), Buffers::apart, 1024), 1U);
  // Partners read each other's vectors at the same time, round by round.
  EXPECT_EQ(most_per_rank(recursive_doubling_all_reduce(4), Buffers::apart, 1 << 20), 6U);
}

}  // namespace
}  // namespace rankine
