// Tests of staging: its pieces, its turns, and copies before the entry (copy_then_reduce).

#include "algorithms/catalogue.h"
#include "algorithms/direct.h"
#include "engine/compile/compile.h"
#include "engine/compile/lower.h"
#include "engine/compile/passes.h"
#include "engine/run/plan.h"
#include "tests/testing.h"

// Pieces, the sums that are shown, and the stores past the caches. The replay checks the results.

namespace rankine {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20, kPiece = std::size_t{64} << 10;

DataflowProgram staged(Collective collective, const char* name, int ranks, std::size_t bytes,
                       Buffers buffers = Buffers::apart) {
  const Algorithm& algorithm = *find_algorithm(collective, name);
  Params params{.ranks = ranks};
  const Schedule schedule = algorithm.make(params);
  const CollectiveSpec goal = goal_of(algorithm, params, schedule);
  const std::vector<std::size_t> counts(static_cast<std::size_t>(natural_blocks(collective, ranks)),
                                        bytes);
  return make_program(schedule, goal, make_layout(goal, counts, 1, Borders::cache_lines), buffers,
                      {.staged = true})
      .value();
}

const Source& source_of(const DataflowProgram& program, const Operation& op, int i = 0) {
  return program.sources[static_cast<std::size_t>(op.first_source + i)];
}
std::vector<Operation> of_rank(const DataflowProgram& program, Rank rank) {
  std::vector<Operation> out;
  std::copy_if(program.operations.begin(), program.operations.end(), std::back_inserter(out),
               [rank](const Operation& op) { return op.rank == rank; });
  return out;
}

TEST(Stage, SumsAreShownPieceByPiece) {
  const DataflowProgram program =
      stage(staged(Collective::all_reduce, "direct_two_shot", 2, kBytes), {.piece = kPiece});
  constexpr std::size_t kPieces = kBytes / 2 / kPiece;
  const std::vector<Operation> ops = of_rank(program, 1);
  ASSERT_EQ(ops.size(), 4 * kPieces);
  for (std::size_t i = 0; i < kPieces; ++i) {
    const Operation &sum = ops[kPieces + 2 * i], &show = ops[kPieces + 2 * i + 1];
    EXPECT_EQ(sum.bytes, kPiece);
    EXPECT_EQ(source_of(program, show).place, sum.destination);
    // Rank 0 staged, or showed, the piece with this position.
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

// Only data read by other ranks alone go past the caches, and only from a given size on.
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
    if (op.code == OpCode::fold) ++before;
  }
  return before;
}

TEST(Stage, ThreadsStageFromWhereTheCostsSay) {
  CompileRequest request;
  request.algorithm = find_algorithm(Collective::all_reduce, "direct_two_shot");
  request.params.ranks = 2;
  request.counts = {kBytes / sizeof(float)};
  request.costs.stage_apart_min_bytes = kBytes;
  EXPECT_GT(compile(request)->plan.rank[0].scratch_bytes, 0U);
  EXPECT_EQ(staging_before_entry(compile(request)->plan), 1);
  request.buffers = Buffers::in_place;
  EXPECT_EQ(compile(request)->plan.rank[0].scratch_bytes, 0U);
  request.costs.stage_in_place_min_bytes = kBytes;
  EXPECT_GT(compile(request)->plan.rank[0].scratch_bytes, 0U);
  request.counts = {kBytes / sizeof(float) - 1};
  EXPECT_EQ(compile(request)->plan.rank[0].scratch_bytes, 0U);
}

// The parts are quarters of all the data that a rank stages first, in whole lines, neither too
// short nor too long.
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
  // 224 KiB for seven others, one block behind the other.
  const Staged sent = by_rank_0(Collective::all_to_all, "direct", 8, 32 << 10);
  EXPECT_EQ(sent.pieces, 4);
  EXPECT_EQ(sent.before_entry, 1);
}

// Processes return while others read their scratch, if it is small. All their
// other calls wait for such readers before they use scratch.
TEST(Stage, ProcessesRunAhead) {
  constexpr std::size_t kAhead = std::size_t{512} << 10;
  const auto root = [](bool staged, std::size_t bytes, std::size_t turn) {
    CompileRequest request;
    request.algorithm = find_algorithm(Collective::broadcast, "linear");
    request.params.ranks = 2;
    request.counts = {bytes / sizeof(float)};
    request.staged = staged;
    request.ahead_max_bytes = kAhead;
    request.transport = Transport::direct;
    request.costs.stage_turn_max_bytes = turn;
    return ops_text(compile(request)->plan, 0);
  };
  EXPECT_EQ(root(true, 4096, 4096), "wait_readers fold enter fold leave_reader 1:1 end");
  EXPECT_EQ(root(false, 4096, 4096), "wait_readers 1 enter fold wait_progress 1:1 end");
  const std::string turns = root(true, 2 * kAhead, kAhead / 2);
  EXPECT_TRUE(turns.ends_with("leave_reader 1:16 end")) << turns;
  const std::string large = root(true, 2 * kAhead, 2 * kAhead);
  EXPECT_TRUE(large.starts_with("wait_readers 1 fold enter fold")) << large;
  EXPECT_TRUE(large.ends_with("wait_progress 1:16 end")) << large;
}

// In these collectives other ranks only fetch the data, which is equally fast from the input.
TEST(Stage, ThreadsThatStoreNowhereElseDoNotStage) {
  const auto scratch = [](Collective collective, const char* name) {
    CompileRequest request;
    request.algorithm = find_algorithm(collective, name);
    request.params.ranks = 2;
    request.counts.assign(static_cast<std::size_t>(natural_blocks(collective, 2)), 100'000);
    request.costs.stage_apart_min_bytes = request.costs.stage_in_place_min_bytes = 1;
    return compile(request)->plan.rank[0].scratch_bytes;
  };
  EXPECT_GT(scratch(Collective::broadcast, "linear"), 0U);
  EXPECT_EQ(scratch(Collective::all_gather, "direct"), 0U);
  EXPECT_EQ(scratch(Collective::reduce_scatter, "direct"), 0U);
  EXPECT_EQ(scratch(Collective::all_to_all, "direct"), 0U);
}

// Staging in turns: the parts, and the scratch that they need. The replay checks the results.

constexpr std::size_t kTurn = std::size_t{64} << 10, kPart = std::size_t{4} << 10;
constexpr TurnOptions kOptions{.scratch = kTurn, .part = kPart};

struct Whole {
  Schedule schedule;
  CollectiveSpec goal;
  Layout layout;

  DataflowProgram program() const {
    return make_program(schedule, goal, layout, Buffers::in_place, {.staged = true}).value();
  }
  DataflowProgram turns(const TurnOptions& options = kOptions) const {
    return in_turns(program(), schedule, goal, layout, Buffers::in_place, {.staged = true},
                    options);
  }
};

Whole whole(Collective collective, const char* name, int ranks, std::vector<std::size_t> counts,
            std::size_t element_bytes = 1) {
  const Algorithm& algorithm = *find_algorithm(collective, name);
  Params params{.ranks = ranks};
  Whole out{algorithm.make(params), {}, {}};
  out.goal = goal_of(algorithm, params, out.schedule);
  counts.resize(static_cast<std::size_t>(natural_blocks(collective, ranks)), counts.back());
  out.layout = make_layout(out.goal, counts, element_bytes, Borders::cache_lines);
  return out;
}

std::size_t most_scratch(const DataflowProgram& program) {
  return *std::max_element(program.scratch_bytes.begin(), program.scratch_bytes.end());
}
// The bytes that a rank's operations write to `memory`.
std::size_t written(const DataflowProgram& program, Rank rank, Memory memory) {
  std::size_t bytes = 0;
  for (const Operation& op : program.operations) {
    if (op.rank == rank && op.destination.memory == memory) bytes += op.bytes;
  }
  return bytes;
}

TEST(Turns, ScratchDoesNotGrowWithTheCall) {
  for (const std::size_t bytes : {std::size_t{1} << 20, std::size_t{1} << 24}) {
    const Whole call = whole(Collective::all_reduce, "direct_two_shot", 2, {bytes});
    const DataflowProgram once = call.program(), turns = call.turns();
    EXPECT_GE(most_scratch(once), bytes);
    EXPECT_LE(most_scratch(turns), 2 * (kTurn + 128));
    for (const Memory memory : {Memory::output, Memory::scratch}) {
      EXPECT_EQ(written(turns, 0, memory), written(once, 0, memory));
    }
  }
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

// The third turn writes to the place of the first one, and waits for its readers.
TEST(Turns, WhoWritesAgainWaitsForWhoHasRead) {
  const Whole call = whole(Collective::broadcast, "linear", 3, {std::size_t{1} << 20});
  const DataflowProgram turns = call.turns();
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

// In place, parts of inputs may lie under other parts of outputs, so only blocks with equal offsets
// are safe.
TEST(Turns, AnAllToAllInPlaceTakesThemWhereBlocksAreEqual) {
  const Whole equal = whole(Collective::all_to_all, "direct", 2, {std::size_t{1} << 20});
  EXPECT_LT(most_scratch(equal.turns()), most_scratch(equal.program()));
  const Whole other = whole(Collective::all_to_all, "direct", 2, {1000, std::size_t{1} << 20});
  EXPECT_EQ(most_scratch(other.turns()), most_scratch(other.program()));
}

// A plan of any call fits its limit and is made quickly.
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
  EXPECT_GT(more, 4 * few);  // below the limit the costs decide turns and pieces
  for (int e = 26; e < 63; e += 6) EXPECT_LT(ops_of(std::size_t{1} << e), 8192U) << e;
  ops_of(std::numeric_limits<std::ptrdiff_t>::max());
}

TEST(Turns, CallsTakeThemAsTheCostsSay) {
  CompileRequest request;
  request.algorithm = find_algorithm(Collective::all_reduce, "direct_two_shot");
  request.params.ranks = 2;
  request.counts = {(std::size_t{8} << 20) / sizeof(float)};
  request.staged = true;
  EXPECT_LE(compile(request)->plan.rank[0].scratch_bytes, 2 * Costs{}.stage_turn_max_bytes + 1024);
  request.costs.stage_turn_max_bytes = std::size_t{8} << 20;
  EXPECT_GE(compile(request)->plan.rank[0].scratch_bytes, std::size_t{8} << 20);
}

// The data that a rank copies before it enters, and the reads redirected to the copies. The fuzz
// test checks the results; the simulation checks that no data is read while it is written.

constexpr std::size_t kBlock = 64;  // bytes

DataflowProgram copied(const Schedule& schedule) {
  const CollectiveSpec goal{Collective::all_reduce, schedule.ranks, schedule.blocks};
  const std::vector<std::size_t> counts = {static_cast<std::size_t>(schedule.blocks) * kBlock / 4};
  auto program =
      make_program(schedule, goal, make_layout(goal, counts, 4, Borders::plain), Buffers::in_place);
  program.status().throw_if_error();
  return copy_then_reduce(std::move(*program));
}

// The ranges (offset, bytes) that a rank copies before it enters.
std::vector<std::pair<std::size_t, std::size_t>> staged(const DataflowProgram& program, Rank rank) {
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
  const DataflowProgram program = copied(direct_all_reduce_two_shot(4));
  using Ranges = std::vector<std::pair<std::size_t, std::size_t>>;
  EXPECT_EQ(staged(program, 0), (Ranges{{kBlock, 3 * kBlock}}));
  EXPECT_EQ(staged(program, 1), (Ranges{{0, kBlock}, {2 * kBlock, 2 * kBlock}}));
  EXPECT_EQ(staged(program, 3), (Ranges{{0, 3 * kBlock}}));
}

// A rank's entry also says that the copy is complete, so no rank waits longer than in place.
TEST(CopyFirst, CostsNoFurtherWait) {
  for (const int n : {2, 3, 8}) {
    DataflowProgram program = copied(direct_all_reduce_two_shot(n));
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

}  // namespace
}  // namespace rankine
