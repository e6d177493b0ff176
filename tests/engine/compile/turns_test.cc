// What is staged in turns, and in how much scratch. That the result is right is the replay's
// business.
#include "engine/compile/staging.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/compile/compile.h"
#include "engine/run/plan.h"

namespace rankine {
namespace {

constexpr std::size_t kTurn = std::size_t{64} << 10, kPart = std::size_t{4} << 10;
constexpr TurnOptions kOptions{.scratch = kTurn, .part = kPart};

struct Whole {
  Schedule schedule;
  Goal goal;
  Layout layout;

  Program program() const {
    return make_program(schedule, goal, layout, Buffers::in_place, {.staged = true}).value();
  }
  Program turns(const TurnOptions& options = kOptions) const {
    return in_turns(program(), schedule, goal, layout, Buffers::in_place, {.staged = true},
                    options);
  }
};

Whole whole(Collective collective, const char* name, int ranks, std::vector<std::size_t> counts,
            std::size_t element_bytes = 1) {
  const Algorithm& algorithm = *find_algorithm(collective, name);
  Params params;
  params.ranks = ranks;
  Whole out{algorithm.make(params), {}, {}};
  out.goal = goal_of(algorithm, params, out.schedule);
  counts.resize(static_cast<std::size_t>(natural_blocks(collective, ranks)), counts.back());
  out.layout = make_layout(out.goal, counts, element_bytes, Borders::cache_lines);
  return out;
}

std::size_t most_scratch(const Program& program) {
  return *std::max_element(program.scratch_bytes.begin(), program.scratch_bytes.end());
}
// That a rank's operations write to that memory.
std::size_t written(const Program& program, Rank rank, Memory memory) {
  std::size_t bytes = 0;
  for (const Operation& op : program.operations) {
    if (op.rank == rank && op.destination.memory == memory) bytes += op.bytes;
  }
  return bytes;
}

TEST(Turns, ScratchDoesNotGrowWithTheCall) {
  for (const std::size_t bytes : {std::size_t{1} << 20, std::size_t{1} << 24}) {
    const Whole call = whole(Collective::all_reduce, "direct_two_shot", 2, {bytes});
    const Program once = call.program(), turns = call.turns();
    EXPECT_GE(most_scratch(once), bytes);
    EXPECT_LE(most_scratch(turns), 2 * (kTurn + 128));
    for (const Memory memory : {Memory::output, Memory::scratch}) {
      EXPECT_EQ(written(turns, 0, memory), written(once, 0, memory));
    }
  }
}

TEST(Turns, WhatFitsTwiceIsLeftAsItIs) {
  const Whole fits = whole(Collective::all_reduce, "direct_two_shot", 2, {2 * kTurn - 1024});
  EXPECT_EQ(fits.turns().operations.size(), fits.program().operations.size());
  const Whole more = whole(Collective::all_reduce, "direct_two_shot", 2, {3 * kTurn});
  EXPECT_GT(more.turns().operations.size(), more.program().operations.size());
}

TEST(Turns, PartsAreOfWholeElementsAndNotTooShort) {
  const Whole call = whole(Collective::broadcast, "linear", 2, {100'000}, 12);
  for (const Operation& op : call.turns().operations) EXPECT_EQ(op.bytes % 12, 0U);
  const Whole many = whole(Collective::all_reduce, "direct_two_shot", 16, {16 * kPart * 3});
  std::vector<std::size_t> sizes;
  for (const Operation& op : many.turns({.scratch = 1, .part = kPart}).operations) {
    sizes.push_back(op.bytes);
  }
  EXPECT_EQ(*std::min_element(sizes.begin(), sizes.end()), kPart);
}

// The third turn writes where the first one wrote, and waits for who has read there.
TEST(Turns, WhoWritesAgainWaitsForWhoHasRead) {
  const Whole call = whole(Collective::broadcast, "linear", 3, {std::size_t{1} << 20});
  const Program turns = call.turns();
  int stages = 0;
  for (const Operation& op : turns.operations) {
    if (op.destination.memory != Memory::scratch) continue;
    EXPECT_EQ(op.earlier, stages < 2 ? 0 : 2) << stages;
    ++stages;
  }
  EXPECT_EQ(stages, 16);
  EXPECT_TRUE(call.turns({.scratch = kTurn, .part = kPart, .mutant = TurnMutant::no_waits})
                  .earlier.empty());
}

// Blocks of different lengths: where one has ended the others go on.
TEST(Turns, ShorterBlocksTakeFewerTurns) {
  const Whole call = whole(Collective::all_gather, "direct", 2, {std::size_t{1} << 20, 5000});
  const Program turns = call.turns();
  EXPECT_EQ(written(turns, 0, Memory::output), written(call.program(), 0, Memory::output));
  EXPECT_EQ(written(turns, 1, Memory::output), written(call.program(), 1, Memory::output));
  EXPECT_LE(most_scratch(turns), 2 * (kTurn + 128));
}

// In place, parts of inputs may lie under other parts of outputs: only what begins alike is safe.
TEST(Turns, AnAllToAllInPlaceTakesThemWhereBlocksAreEqual) {
  const Whole equal = whole(Collective::all_to_all, "direct", 2, {std::size_t{1} << 20});
  EXPECT_LT(most_scratch(equal.turns()), most_scratch(equal.program()));
  const Whole other = whole(Collective::all_to_all, "direct", 2, {1000, std::size_t{1} << 20});
  EXPECT_EQ(most_scratch(other.turns()), most_scratch(other.program()));
}

// However large a call is, there is room for its plan, and it is soon made.
TEST(Turns, AreNoMoreThanAPlanHasRoomFor) {
  CompileRequest request;
  request.algorithm = find_algorithm(Collective::all_reduce, "direct_two_shot");
  request.params.ranks = 4;
  request.staged = true;
  request.limits.bytes = std::size_t{8} << 20;
  const auto ops_of = [&](std::size_t bytes) {
    request.counts = {bytes / sizeof(float)};
    const auto compiled = compile(request);
    EXPECT_TRUE(compiled.ok()) << bytes << ": " << compiled.status().text();
    return compiled.ok() ? compiled->plan.rank[0].ops.size() : 0;
  };
  const std::size_t few = ops_of(std::size_t{1} << 20), more = ops_of(std::size_t{8} << 20);
  EXPECT_GT(more, 4 * few);  // where there is room, turns and pieces are as the costs say
  for (int e = 26; e < 63; e += 6) EXPECT_LT(ops_of(std::size_t{1} << e), 8192U) << e;
  ops_of(std::numeric_limits<std::ptrdiff_t>::max());
}

TEST(Turns, CallsTakeThemAsTheCostsSay) {
  CompileRequest request;
  request.algorithm = find_algorithm(Collective::all_reduce, "direct_two_shot");
  request.params.ranks = 2;
  request.counts = {(std::size_t{8} << 20) / sizeof(float)};
  request.staged = true;
  EXPECT_LE(compile(request)->plan.rank[0].scratch_bytes, 2 * Costs{}.stage_turn + 1024);
  request.costs.stage_turn = std::size_t{8} << 20;
  EXPECT_GE(compile(request)->plan.rank[0].scratch_bytes, std::size_t{8} << 20);
}

}  // namespace
}  // namespace rankine
