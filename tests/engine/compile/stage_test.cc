// What is cut, shown and stored past the caches. That the result is right is the replay's business.
#include "engine/compile/staging.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/compile/compile.h"
#include "engine/run/plan.h"

namespace rankine {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20, kPiece = std::size_t{64} << 10;

Program staged(Collective collective, const char* name, int ranks, std::size_t bytes,
               Buffers buffers = Buffers::apart) {
  const Algorithm& algorithm = *find_algorithm(collective, name);
  Params params;
  params.ranks = ranks;
  const Schedule schedule = algorithm.make(params);
  const Goal goal = goal_of(algorithm, params, schedule);
  const std::vector<std::size_t> counts(static_cast<std::size_t>(natural_blocks(collective, ranks)),
                                        bytes);
  return make_program(schedule, goal, make_layout(goal, counts, 1, Borders::cache_lines), buffers,
                      {.staged = true})
      .value();
}

const Source& source_of(const Program& program, const Operation& op, int i = 0) {
  return program.sources[static_cast<std::size_t>(op.first_source + i)];
}
std::vector<Operation> of_rank(const Program& program, Rank rank) {
  std::vector<Operation> out;
  std::copy_if(program.operations.begin(), program.operations.end(), std::back_inserter(out),
               [rank](const Operation& op) { return op.rank == rank; });
  return out;
}

// Stages what the other adds up; adds up its half from its own input; shows it; copies the other.
TEST(Stage, ARankGoesOnWithWhatItHas) {
  for (const Buffers buffers : {Buffers::apart, Buffers::in_place}) {
    const Program program = staged(Collective::all_reduce, "direct_two_shot", 2, kBytes, buffers);
    const std::vector<Operation> ops = of_rank(program, 0);
    ASSERT_EQ(ops.size(), 4U);
    EXPECT_EQ(ops[0].round, kStaging);
    EXPECT_EQ(ops[0].destination.memory, Memory::scratch);
    EXPECT_EQ(ops[1].destination.memory, Memory::output);
    EXPECT_EQ(source_of(program, ops[1], 0).place.memory, Memory::input);
    EXPECT_EQ(source_of(program, ops[1], 1).place.memory, Memory::scratch);
    EXPECT_EQ(ops[2].destination.memory, Memory::scratch);
    EXPECT_EQ(source_of(program, ops[2]).place, ops[1].destination);
    EXPECT_EQ(ops[3].destination.memory, Memory::output);
    EXPECT_EQ(source_of(program, ops[3]).place.memory, Memory::scratch);
  }
}

TEST(Stage, SumsAreShownPieceByPiece) {
  const Program program =
      stage(staged(Collective::all_reduce, "direct_two_shot", 2, kBytes), {.piece = kPiece});
  constexpr std::size_t kPieces = kBytes / 2 / kPiece;
  const std::vector<Operation> ops = of_rank(program, 1);
  ASSERT_EQ(ops.size(), 4 * kPieces);
  for (std::size_t i = 0; i < kPieces; ++i) {
    const Operation &sum = ops[kPieces + 2 * i], &show = ops[kPieces + 2 * i + 1];
    EXPECT_EQ(sum.bytes, kPiece);
    EXPECT_EQ(source_of(program, show).place, sum.destination);
    // The same piece of what rank 0 has staged, and shown.
    const auto made_by = [&](const Source& source) {
      return program.operations[static_cast<std::size_t>(source.producer)];
    };
    const Source& added = source_of(program, sum, 0);
    EXPECT_EQ(made_by(added).rank, 0);
    EXPECT_EQ(made_by(added).destination, added.place);
    const Source& copied = source_of(program, ops[3 * kPieces + i]);
    EXPECT_EQ(made_by(copied).destination, copied.place);
  }
}

TEST(Stage, TheLastPieceTakesWhatIsLeft) {
  const Program whole = staged(Collective::broadcast, "linear", 2, 2 * kPiece - 1);
  EXPECT_EQ(of_rank(stage(whole, {.piece = kPiece}), 1).size(), 1U);
  const Program two = staged(Collective::broadcast, "linear", 2, 3 * kPiece - 1);
  const std::vector<Operation> ops = of_rank(stage(two, {.piece = kPiece}), 1);
  ASSERT_EQ(ops.size(), 2U);
  EXPECT_EQ(ops[1].bytes, 2 * kPiece - 1);
}

TEST(Stage, NoPieceEndsInsideAnElement) {
  const Program whole = staged(Collective::broadcast, "linear", 2, 10 * 12);
  for (const Operation& op : stage(whole, {.piece = 40, .element_bytes = 12}).operations) {
    EXPECT_EQ(op.bytes % 12, 0U);
  }
  EXPECT_EQ(of_rank(stage(whole, {.piece = 1, .element_bytes = 12}), 1).size(), 10U);
}

// Only what others alone read, and from a size on.
TEST(Stage, WhatOthersReadGoesPastTheCaches) {
  const auto streams = [](const char* name, std::size_t from) {
    std::size_t bytes = 0;
    for (const Operation& op :
         stage(staged(Collective::all_reduce, name, 2, kBytes), {.stream = from, .piece = kPiece})
             .operations) {
      bytes += op.rank == 0 && op.stages ? op.bytes : 0;
      EXPECT_TRUE(!op.stages || op.destination.memory == Memory::scratch);
    }
    return bytes;
  };
  EXPECT_EQ(streams("direct_two_shot", kBytes / 2), kBytes);
  EXPECT_EQ(streams("direct_two_shot", kBytes / 2 + 1), 0U);
  EXPECT_EQ(streams("direct_one_shot", kBytes), kBytes);
}

int staging_before_entry(const Plan& plan) {
  int before = 0;
  for (const Op& op : plan.rank[0].ops) {
    if (op.code == OpCode::enter) break;
    ++before;
  }
  return before;
}

TEST(Stage, ThreadsStageFromWhereTheCostsSay) {
  CompileRequest request;
  request.algorithm = find_algorithm(Collective::all_reduce, "direct_two_shot");
  request.params.ranks = 2;
  request.counts = {kBytes / sizeof(float)};
  request.costs.stage_apart = kBytes;
  EXPECT_GT(compile(request)->plan.rank[0].scratch_bytes, 0U);
  EXPECT_EQ(staging_before_entry(compile(request)->plan), 1);
  request.buffers = Buffers::in_place;
  EXPECT_EQ(compile(request)->plan.rank[0].scratch_bytes, 0U);
  request.costs.stage_in_place = kBytes;
  EXPECT_GT(compile(request)->plan.rank[0].scratch_bytes, 0U);
  request.counts = {kBytes / sizeof(float) - 1};
  EXPECT_EQ(compile(request)->plan.rank[0].scratch_bytes, 0U);
}

// The parts are those of all that a rank stages first, whole lines, and neither too short nor too
// long.
TEST(Stage, OthersBeginWhenAQuarterIsThere) {
  struct Staged {
    int pieces, before_entry;
  };
  const auto by_rank_0 = [](Collective collective, const char* name, int ranks, std::size_t block) {
    CompileRequest request;
    request.algorithm = find_algorithm(collective, name);
    request.params.ranks = ranks;
    const auto blocks = static_cast<std::size_t>(natural_blocks(collective, ranks));
    request.counts.assign(blocks, block / sizeof(float));
    request.staged = true;
    request.transport = Transport::direct;
    const Plan plan = compile(request)->plan;
    const std::vector<Op>& ops = plan.rank[0].ops;
    const auto pieces = std::count_if(ops.begin(), ops.end(), [](const Op& op) {
      return op.code == OpCode::fold && op.memory == Memory::scratch;
    });
    return Staged{static_cast<int>(pieces), staging_before_entry(plan)};
  };
  const auto broadcast = [&](std::size_t bytes) {
    const Staged staged = by_rank_0(Collective::broadcast, "linear", 2, bytes);
    EXPECT_EQ(staged.before_entry, 1) << bytes;
    return staged.pieces;
  };
  EXPECT_EQ(broadcast(4096), 1);
  EXPECT_EQ(broadcast(8192), 2);
  EXPECT_EQ(broadcast(32 << 10), 4);
  EXPECT_EQ(broadcast((32 << 10) + 4), 3);  // a quarter ends inside a line
  EXPECT_EQ(broadcast(256 << 10), 4);
  EXPECT_EQ(broadcast(1 << 20), 16);
  // 224 KiB for seven others, one behind the other.
  const Staged sent = by_rank_0(Collective::all_to_all, "direct", 8, 32 << 10);
  EXPECT_EQ(sent.pieces, 4);
  EXPECT_EQ(sent.before_entry, 1);
}

// All that others do with it is to fetch it, which is as fast where it is.
TEST(Stage, ThreadsThatStoreNowhereElseDoNotStage) {
  const auto scratch = [](Collective collective, const char* name) {
    CompileRequest request;
    request.algorithm = find_algorithm(collective, name);
    request.params.ranks = 2;
    request.counts.assign(static_cast<std::size_t>(natural_blocks(collective, 2)), 100'000);
    request.costs.stage_apart = request.costs.stage_in_place = 1;
    return compile(request)->plan.rank[0].scratch_bytes;
  };
  EXPECT_GT(scratch(Collective::broadcast, "linear"), 0U);
  EXPECT_EQ(scratch(Collective::all_gather, "direct"), 0U);
  EXPECT_EQ(scratch(Collective::reduce_scatter, "direct"), 0U);
  EXPECT_EQ(scratch(Collective::all_to_all, "direct"), 0U);
}

}  // namespace
}  // namespace rankine
