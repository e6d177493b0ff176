// What is copied before a rank enters, and what becomes of the reads. That the result is right is
// the fuzz test's business, that nothing is read while it is written the simulation's.
#include "engine/compile/direct_passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "algorithms/direct.h"
#include "engine/compile/direct_passes.h"
#include "engine/compile/lower.h"
#include "engine/run/plan.h"

namespace rankine {
namespace {

constexpr std::size_t kBlock = 64;  // bytes

Program copied(const Schedule& schedule) {
  const Goal goal{Collective::all_reduce, schedule.ranks, schedule.blocks};
  const std::vector<std::size_t> counts = {static_cast<std::size_t>(schedule.blocks) * kBlock / 4};
  auto program =
      make_program(schedule, goal, make_layout(goal, counts, 4, Borders::plain), Buffers::in_place);
  program.status().throw_if_error();
  return copy_first(std::move(*program));
}

// Of what a rank copies before it enters: (offset, bytes).
std::vector<std::pair<std::size_t, std::size_t>> staged(const Program& program, Rank rank) {
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  for (const Operation& op : program.operations) {
    if (op.round != kStaging || op.rank != rank) continue;
    const Source& from = program.sources[static_cast<std::size_t>(op.first_source)];
    EXPECT_EQ(op.destination, (Place{Memory::output, from.place.offset}));
    EXPECT_EQ(from.place.memory, Memory::input);
    ranges.emplace_back(op.destination.offset, op.bytes);
  }
  return ranges;
}

TEST(CopyFirst, OfTwoShotsWhatTheOthersAddUp) {
  const Program program = copied(direct_all_reduce_two_shot(4));
  using Ranges = std::vector<std::pair<std::size_t, std::size_t>>;
  EXPECT_EQ(staged(program, 0), (Ranges{{kBlock, 3 * kBlock}}));
  EXPECT_EQ(staged(program, 1), (Ranges{{0, kBlock}, {2 * kBlock, 2 * kBlock}}));
  EXPECT_EQ(staged(program, 3), (Ranges{{0, 3 * kBlock}}));
}

TEST(CopyFirst, NobodyReadsAnothersInput) {
  for (const int n : {2, 3, 8}) {
    const Program program = copied(direct_all_reduce_two_shot(n));
    for (const Operation& op : program.operations) {
      for (int s = 0; s < op.sources; ++s) {
        const Source& source = program.sources[static_cast<std::size_t>(op.first_source + s)];
        if (source.rank == op.rank) continue;
        EXPECT_NE(source.place.memory, Memory::input);
        EXPECT_GE(source.producer, 0);
      }
    }
  }
}

// The entry says that a rank has copied, so nobody waits for more than in place.
TEST(CopyFirst, CostsNoFurtherWait) {
  for (const int n : {2, 3, 8}) {
    Program program = copied(direct_all_reduce_two_shot(n));
    push(program, Buffers::apart);
    const Plan plan = lower_direct(program, {});
    for (const RankPlan& rank : plan.rank) {
      const auto count = [&rank](OpCode code) {
        return std::count_if(rank.ops.begin(), rank.ops.end(),
                             [code](const Op& op) { return op.code == code; });
      };
      EXPECT_EQ(count(OpCode::wait_entry), n - 1);
      EXPECT_EQ(count(OpCode::wait_progress), n - 1);
      const auto enters = std::find_if(rank.ops.begin(), rank.ops.end(),
                                       [](const Op& op) { return op.code == OpCode::enter; });
      EXPECT_TRUE(std::all_of(rank.ops.begin(), enters, [](const Op& op) {
        return op.code == OpCode::fold && op.value == 0;
      }));
    }
  }
}

// Rank 0's vector is the result as it is: copied when the program says so, while others read the
// first copy of it, it would be written under their eyes.
TEST(CopyFirst, AResultThatLiesThereIsWrittenOnce) {
  const Schedule schedule{2, 1, 1, [](int, Send send) { send(0, 1, block(0), reduce); }};
  const Goal goal{Collective::all_reduce, 2, 1};
  const std::vector<std::size_t> counts = {kBlock / 4};
  auto program =
      make_program(schedule, goal, make_layout(goal, counts, 4, Borders::plain), Buffers::in_place);
  ASSERT_TRUE(program.ok());
  const Program out = copy_first(*program);
  EXPECT_EQ(staged(out, 0).size(), 1U);
  for (const Operation& op : out.operations) {
    if (op.rank != 0 || op.round == kStaging) continue;
    const Source& from = out.sources[static_cast<std::size_t>(op.first_source)];
    EXPECT_EQ(from.place, op.destination);  // nothing to do
  }
}

}  // namespace
}  // namespace rankine
