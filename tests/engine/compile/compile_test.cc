#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/direct.h"
#include "algorithms/recursive_doubling.h"
#include "algorithms/ring.h"
#include "algorithms/schedule/combine.h"
#include "engine/compile/compile.h"
#include "engine/compile/program.h"
#include "engine/compile/ssa.h"

namespace rankine {
namespace {

CompileRequest request_for(const char* name, int ranks, std::size_t count) {
  CompileRequest request;
  request.algorithm = find_algorithm(Collective::all_reduce, name);
  request.params.ranks = ranks;
  request.counts = {count};
  request.slot_payload = 48;
  return request;
}

TEST(Compile, SmallDataGoToMailboxesAndLargeOnesStayWhereTheyAre) {
  const auto chosen = [](CompileRequest request, std::size_t slot_payload) {
    request.slot_payload = slot_payload;
    auto compiled = compile(request);
    EXPECT_TRUE(compiled.ok()) << compiled.status().text();
    return compiled->plan.transport;
  };
  // Four blocks of 64 bytes each: a slot must hold the whole vector of an all-reduce, or one block
  // of other collectives.
  const CompileRequest all_reduce = request_for("ring", 4, 4 * 16);
  EXPECT_EQ(chosen(all_reduce, 256), Transport::mailbox);
  EXPECT_EQ(chosen(all_reduce, 255), Transport::direct);
  CompileRequest gather;
  gather.algorithm = find_algorithm(Collective::all_gather, "ring");
  gather.params.ranks = 4;
  gather.counts = {16, 16, 16, 16};
  EXPECT_EQ(chosen(gather, 64), Transport::mailbox);
  EXPECT_EQ(chosen(gather, 63), Transport::direct);
  CompileRequest forced = request_for("ring", 4, 5);
  forced.transport = Transport::direct;
  EXPECT_EQ(compile(forced)->plan.transport, Transport::direct);
}

// A core for each rank, and ranks that share cores.
TEST(Compile, WhoHasACoreReadsWhatIsLongWhereItLies) {
  const auto chosen = [](CompileRequest request, std::size_t board_bytes) {
    request.board_bytes = board_bytes;
    request.slot_payload = 1024;
    auto compiled = compile(request);
    EXPECT_TRUE(compiled.ok()) << compiled.status().text();
    return compiled->plan.transport;
  };
  // Vectors of 512 bytes, 4 KiB in all, and slightly longer ones.
  CompileRequest shot = request_for("direct_one_shot", 8, 128);
  EXPECT_EQ(chosen(shot, 8192), Transport::board);
  shot.counts = {129};
  EXPECT_EQ(chosen(shot, 8192), Transport::direct);
  shot.costs = shared_core_costs({});
  EXPECT_EQ(chosen(shot, 8192), Transport::board);
  // Seven messages of one line, and of two; one message may fill the slot.
  CompileRequest told;
  told.algorithm = find_algorithm(Collective::broadcast, "linear");
  told.params.ranks = 8;
  told.counts = {12};
  EXPECT_EQ(chosen(told, 0), Transport::mailbox);
  told.counts = {13};
  EXPECT_EQ(chosen(told, 0), Transport::direct);
  told.costs = shared_core_costs({});
  EXPECT_EQ(chosen(told, 0), Transport::mailbox);
  told.costs = {};
  told.counts = {256};
  told.params.ranks = 2;
  EXPECT_EQ(chosen(told, 0), Transport::mailbox);
}

// If all ranks have a core, a rank reads at most 512 bytes of another's board: all the posted data,
// or a part.
TEST(Compile, WhoHasACoreReadsLittleOfABoard) {
  const auto on_board = [](Collective collective, std::size_t block, const Costs& costs) {
    CompileRequest request;
    request.algorithm = find_algorithm(collective, "direct");
    request.params.ranks = 4;
    request.counts.assign(collective == Collective::all_to_all ? 16 : 4, block / sizeof(float));
    request.board_bytes = 8192;
    request.costs = costs;
    return compile(request)->plan.transport == Transport::board;
  };
  for (const Collective collective :
       {Collective::all_gather, Collective::all_to_all, Collective::reduce_scatter}) {
    EXPECT_TRUE(on_board(collective, 512, {})) << name_of(collective);
    EXPECT_FALSE(on_board(collective, 516, {})) << name_of(collective);
    EXPECT_TRUE(on_board(collective, 2048, shared_core_costs({}))) << name_of(collective);
    EXPECT_TRUE(on_board(collective, 2048, staged_costs({}))) << name_of(collective);
  }
}

TEST(Compile, ABoardHoldsAllThatARankTellsTheOthersAndThatOnce) {
  const auto on_board = [](CompileRequest request, std::size_t board_bytes) {
    request.board_bytes = board_bytes;
    return compile(request)->plan.transport == Transport::board;
  };
  // One vector of 64 bytes for three others.
  const CompileRequest one = request_for("direct_one_shot", 4, 16);
  EXPECT_TRUE(on_board(one, 64));
  EXPECT_FALSE(on_board(one, 63));
  // A block of 16 bytes for each of them; the rank's block may lie between these.
  CompileRequest each;
  each.algorithm = find_algorithm(Collective::all_to_all, "direct");
  each.params.ranks = 4;
  each.counts.assign(16, 4);
  each.slot_payload = 48;
  EXPECT_TRUE(on_board(each, 64));
  EXPECT_FALSE(on_board(each, 47));
}

int folds(const Plan& plan, Rank r) {
  int count = 0;
  for (const Op& op : plan.rank[static_cast<std::size_t>(r)].ops) {
    count += op.code == OpCode::fold ? 1 : 0;
  }
  return count;
}

TEST(Compile, InPlaceSmallVectorsNeedNoStaging) {
  CompileRequest small = request_for("direct_one_shot", 2, 4);
  small.buffers = Buffers::in_place;
  EXPECT_EQ(folds(compile(small)->plan, 0), 1);
  // Large blocks do: the other rank reads data that the sum overwrites.
  CompileRequest large = request_for("direct_one_shot", 2, 400);
  large.buffers = Buffers::in_place;
  EXPECT_EQ(folds(compile(large)->plan, 0), 2);
}

TEST(Compile, RoundsOfManyMessagesAreStillMadeOfSmallOnes) {
  // More messages of one pair in a round than a mailbox may have in flight.
  const Schedule many{2, 1, 1, [](int, Send send) {
                        for (int i = 0; i < 20; ++i) send(0, 1, block(0), reduce);
                      }};
  CompileRequest request = request_for("ring", 2, 4);
  request.buffers = Buffers::in_place;
  request.transport = Transport::mailbox;
  EXPECT_FALSE(compile(request, many, {Collective::all_reduce, 2, 1}).ok());
  const Schedule blocks{2, 20, 1, [](int, Send send) {
                          for (int b = 0; b < 20; b += 2) {
                            send(0, 1, block(b), reduce);
                            send(1, 0, block(b), reduce);
                          }
                        }};
  request.counts = {20};
  EXPECT_TRUE(compile(request, blocks, {Collective::all_reduce, 2, 20}).ok());
}

// From 16 KiB to 1 MiB among more than four ranks with a core each, in place or not.
TEST(Compile, SumsAreFetchedAmongSome) {
  const auto pushes = [](int ranks, std::size_t bytes, Buffers buffers, const Costs& costs) {
    CompileRequest request = request_for("direct_two_shot", ranks, bytes / sizeof(float));
    request.buffers = buffers;
    request.transport = Transport::direct;
    request.costs = costs;
    const auto compiled = compile(request);
    const std::vector<Op>& ops = compiled->plan.rank[0].ops;
    return std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.copies > 1; });
  };
  constexpr std::size_t kKiB = 1024;
  for (const Buffers buffers : {Buffers::apart, Buffers::in_place}) {
    EXPECT_TRUE(pushes(4, 64 * kKiB, buffers, {}));
    EXPECT_TRUE(pushes(5, 16 * kKiB - 4, buffers, {}));
    EXPECT_FALSE(pushes(5, 16 * kKiB, buffers, {}));
    EXPECT_FALSE(pushes(8, 1024 * kKiB, buffers, {}));
    EXPECT_TRUE(pushes(8, 1024 * kKiB + 4, buffers, {}));
    EXPECT_TRUE(pushes(8, 64 * kKiB, buffers, shared_core_costs({})));
  }
}

TEST(Compile, SumsArePushedUnlessAskedOtherwise) {
  CompileRequest request = request_for("direct_two_shot", 4, 4096);
  const auto copies = [](const Plan& plan) {
    int count = 0;
    for (const Op& op : plan.rank[0].ops) count += op.copies;
    return count;
  };
  EXPECT_EQ(copies(compile(request)->plan), 3);
  request.pushes = false;
  EXPECT_EQ(copies(compile(request)->plan), 0);
}

TEST(Compile, WhatNoCacheHoldsIsStoredPastThem) {
  const auto streaming = [](const CompileRequest& request) {
    const auto compiled = compile(request);
    int count = 0;
    for (const Op& op : compiled->plan.rank[0].ops) {
      count += (op.flags & kStreams) != 0 ? 1 : 0;
    }
    return count;
  };
  CompileRequest request = request_for("direct_two_shot", 2, 4 << 20);
  EXPECT_EQ(streaming(request), 1);
  request.counts = {3 << 20};
  EXPECT_EQ(streaming(request), 0);
  request.counts = {4 << 20};
  request.buffers = Buffers::in_place;
  EXPECT_EQ(streaming(request), 0);
  // Two of a ring's six steps stream: the pushed sum, and the last block. All other results are
  // read again.
  CompileRequest ring = request_for("ring", 4, 16 << 20);
  EXPECT_EQ(streaming(ring), 2);
}

TEST(Compile, BordersInsideAVectorAreOnLinesAndElsewhereTheUsers) {
  auto vector = compile(request_for("ring", 3, 100));
  ASSERT_TRUE(vector.ok());
  EXPECT_EQ(vector->layout.blocks[1].input % 64, 0U);
  CompileRequest gather;
  gather.algorithm = find_algorithm(Collective::all_gather, "ring");
  gather.params.ranks = 3;
  gather.counts = {5, 5, 5};
  gather.slot_payload = 48;
  auto users = compile(gather);
  ASSERT_TRUE(users.ok());
  EXPECT_EQ(users->layout.blocks[1].output, 20U);
}

TEST(Compile, KernelsAreThereWhereSomethingIsReduced) {
  auto reduce = compile(request_for("ring", 2, 10));
  ASSERT_TRUE(reduce.ok());
  EXPECT_NE(reduce->plan.fold, nullptr);
  EXPECT_NE(reduce->plan.spread, nullptr);
  EXPECT_EQ(reduce->plan.divisor, 0);
  CompileRequest average = request_for("ring", 2, 10);
  average.op = ReduceOp::avg;
  EXPECT_EQ(compile(average)->plan.divisor, 2);
  EXPECT_EQ(reduce->plan.algorithm, "ring");
}

TEST(Compile, SaysWhatItCannotDo) {
  CompileRequest request = request_for("ring", 2, 10);
  request.op = ReduceOp::bxor;
  const auto bits = compile(request);
  ASSERT_FALSE(bits.ok());
  EXPECT_EQ(bits.status().text(),
            "operation is bxor, type is f32; f32 takes sum, prod, min, max and avg");
  EXPECT_FALSE(compile(request_for("ring", 0, 10)).ok());
}

TEST(Compile, AScheduleOfOnesOwn) {
  const Schedule twice = then(ring_all_reduce(3), ring_all_reduce(3));
  CompileRequest request;
  request.counts = {30};
  request.type = DataType::u32;
  request.slot_payload = 48;
  const auto compiled = compile(request, twice, {Collective::all_reduce, 3, 3});
  ASSERT_TRUE(compiled.ok()) << compiled.status().text();
  EXPECT_EQ(compiled->plan.ranks, 3);
  EXPECT_EQ(compiled->plan.rounds, 8);
}

TEST(Compile, ASumIsRefusedWhereTheCollectiveHasNone) {
  const Schedule adds{2, 2, 1, [](int, Send send) { send(0, 0, block(0), reduce); }};
  CompileRequest request;
  request.counts = {4, 4};
  request.slot_payload = 48;
  const auto refused = compile(request, adds, {Collective::all_gather, 2, 2});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().text(), "schedule: adds blocks up; allowed for all_gather are copies");
}

}  // namespace

namespace {

CollectiveSpec all_reduce_goal(const Schedule& schedule) {
  return {Collective::all_reduce, schedule.ranks, schedule.blocks};
}

// 16 elements of 4 bytes per block.
Result<DataflowProgram> program_of(const Schedule& schedule, Buffers buffers, CollectiveSpec goal) {
  const auto natural = static_cast<std::size_t>(natural_blocks(goal.collective, goal.ranks));
  const auto parts = static_cast<std::size_t>(goal.blocks) / natural;
  const std::vector<std::size_t> counts(natural, 16 * parts);
  return make_program(schedule, goal, make_layout(goal, counts, 4, Borders::plain), buffers);
}
DataflowProgram program_of(const Schedule& schedule, Buffers buffers) {
  auto program = program_of(schedule, buffers, all_reduce_goal(schedule));
  program.status().throw_if_error();
  return std::move(*program);
}

std::string text_of(const Place& place) {
  constexpr const char* kNames[] = {"in", "out", "scratch", "message"};
  return std::string(kNames[static_cast<int>(place.memory)]) + "+" + std::to_string(place.offset);
}

// "0@1: out+0 64 B = in+0 + 1:in+0": an operation of round 0 at rank 1.
std::vector<std::string> text_of(const DataflowProgram& program) {
  std::vector<std::string> lines;
  for (const Operation& op : program.operations) {
    std::string line = std::to_string(op.round) + "@" + std::to_string(op.rank) + ": " +
                       text_of(op.destination) + " " + std::to_string(op.bytes) + " B =";
    for (int i = 0; i < op.sources; ++i) {
      const Source& s = program.sources[static_cast<std::size_t>(op.first_source + i)];
      line += i == 0 ? " " : " + ";
      if (s.rank != op.rank) line += std::to_string(s.rank) + ":";
      line += text_of(s.place);
    }
    if (op.earlier > 0) line += ", after " + std::to_string(op.earlier);
    if (op.completes) line += ", complete";
    if (op.only_if_moved) line += ", if moved";
    lines.push_back(line);
  }
  return lines;
}

using Lines = std::vector<std::string>;

Schedule make_schedule(int ranks, int blocks, int rounds, std::function<void(int, Send)> round,
                       int planes = 1) {
  return {ranks, blocks, rounds, std::move(round), {}, planes};
}

TEST(DataflowProgram, AnExchangeApartWritesOutputsAndReadsInputs) {
  EXPECT_EQ(text_of(program_of(recursive_doubling_all_reduce(2), Buffers::apart)),
            (Lines{"0@1: out+0 64 B = 0:in+0 + in+0, complete",
                   "0@0: out+0 64 B = in+0 + 1:in+0, complete"}));
}

TEST(DataflowProgram, AnExchangeInPlaceStagesInputsThatTheOtherStillReads) {
  const DataflowProgram program = program_of(recursive_doubling_all_reduce(2), Buffers::in_place);
  EXPECT_EQ(text_of(program), (Lines{"-1@0: scratch+0 64 B = in+0", "-1@1: scratch+0 64 B = in+0",
                                     "0@1: out+0 64 B = 0:scratch+0 + scratch+0, complete",
                                     "0@0: out+0 64 B = scratch+0 + 1:scratch+0, complete"}));
  EXPECT_EQ(program.scratch_bytes, (std::vector<std::size_t>{64, 64}));
}

TEST(DataflowProgram, ExchangesOfManyRoundsAlternateBetweenPlaces) {
  // The last version is in the output; each earlier one is read while the next one is written.
  const Lines lines = text_of(program_of(recursive_doubling_all_reduce(8), Buffers::apart));
  ASSERT_EQ(lines.size(), 24U);
  for (std::size_t i = 0; i < 24; ++i) {
    const std::string place = i / 8 == 1 ? ": scratch+0 64 B" : ": out+0 64 B";
    EXPECT_NE(lines[i].find(place), std::string::npos) << lines[i];
  }
}

TEST(DataflowProgram, InPlaceTheFirstOfManyVersionsGoesToScratch) {
  // v0 is in the shared memory. v1 may not overwrite it; v2 may, because no rank reads v0 any more.
  const DataflowProgram program = program_of(recursive_doubling_all_reduce(4), Buffers::in_place);
  for (const std::string& line : text_of(program)) {
    const bool first = line.starts_with("0@");
    EXPECT_NE(line.find(first ? ": scratch+0" : ": out+0"), std::string::npos) << line;
  }
  // With three versions, the first two are in different places of scratch.
  for (const std::string& line :
       text_of(program_of(recursive_doubling_all_reduce(8), Buffers::in_place))) {
    const char* wanted = line.starts_with("0@")   ? ": scratch+64"
                         : line.starts_with("1@") ? ": scratch+0"
                                                  : ": out+0";
    EXPECT_NE(line.find(wanted), std::string::npos) << line;
  }
}

TEST(DataflowProgram, AChainInPlaceNeedsNoScratch) {
  // Every rank adds to its value and hands the sum on, so no rank reads a value that is being
  // replaced.
  const Schedule chain = make_schedule(3, 1, 4, [](int k, Send send) {
    if (k < 2) {
      send(k, k + 1, block(0), reduce);
    } else {
      send(4 - k, 3 - k, block(0), copy);
    }
  });
  const DataflowProgram program = program_of(chain, Buffers::in_place);
  EXPECT_EQ(text_of(program),
            (Lines{"0@1: out+0 64 B = 0:in+0 + in+0", "1@2: out+0 64 B = 1:out+0 + in+0, complete",
                   "2@1: out+0 64 B = 2:out+0, after 1", "3@0: out+0 64 B = 1:out+0, after 1"}));
  EXPECT_EQ(program.scratch_bytes, (std::vector<std::size_t>{0, 0, 0}));
}

TEST(DataflowProgram, ARingApartReadsInputsFirst) {
  for (const Buffers buffers : {Buffers::apart, Buffers::in_place}) {
    const DataflowProgram program = program_of(ring_all_reduce(3), buffers);
    EXPECT_EQ(program.operations.size(), 12U);  // two per rank and phase
    EXPECT_EQ(program.scratch_bytes, (std::vector<std::size_t>{0, 0, 0}));
  }
}

TEST(DataflowProgram, ReductionsOfOneRoundFuseInTheOrderOfTheirLowestRank) {
  const Schedule all_to_zero = make_schedule(4, 1, 1, [](int, Send send) {
    send(2, 0, block(0), reduce);
    send(ranks_from(3, 2), 0, block(0), reduce);  // 3, then 0 itself again
    send(1, 0, block(0), reduce);
  });
  EXPECT_EQ(text_of(program_of(all_to_zero, Buffers::apart))[3],
            "0@0: out+0 64 B = in+0 + in+0 + 1:in+0 + 2:in+0 + 3:in+0");
}

// A partial sum takes the place of its lowest contribution, from any sender.
TEST(DataflowProgram, PartialSumsAreAddedInTheOrderOfTheirLowestRank) {
  const Schedule schedule = make_schedule(4, 1, 2, [](int k, Send send) {
    if (k == 0) send(0, 3, block(0), reduce);  // rank 3 has 0 + 3
    if (k == 1) send(ranks_from(2, 2), 1, block(0), reduce);
  });
  const Lines lines = text_of(program_of(schedule, Buffers::apart));
  EXPECT_EQ(lines[lines.size() - 1], "1@1: out+0 64 B = 3:out+0 + in+0 + 2:in+0, complete");
}

TEST(DataflowProgram, OwnBlocksThatNobodyWritesAreCopiedOnceAndOnlyIfMoved) {
  const Schedule nothing_at_all = nothing(2, 3);
  EXPECT_EQ(text_of(program_of(nothing_at_all, Buffers::apart)),
            (Lines{"0@0: out+0 192 B = in+0, if moved", "0@1: out+0 192 B = in+0, if moved"}));
  const CollectiveSpec gather{Collective::all_gather, 3, 3};
  auto program = program_of(ring_all_gather(3), Buffers::apart, gather);
  ASSERT_TRUE(program.ok()) << program.status().text();
  const Lines lines = text_of(*program);
  EXPECT_EQ(lines[0], "0@0: out+0 64 B = in+0, if moved");
  EXPECT_EQ(lines[1], "0@1: out+64 64 B = in+0, if moved");
  EXPECT_EQ(lines[2], "0@2: out+128 64 B = in+0, if moved");
}

TEST(DataflowProgram, NeighboursThatTravelTogetherAreOneOperation) {
  const Schedule pairs = make_schedule(2, 6, 1, [](int, Send send) {
    send(0, 1, blocks(0, 4), reduce);
    send(0, 1, block(5), reduce);
  });
  EXPECT_EQ(text_of(program_of(pairs, Buffers::apart)),
            (Lines{"0@0: out+0 384 B = in+0, if moved", "0@1: out+256 64 B = in+256, if moved",
                   "0@1: out+0 256 B = 0:in+0 + in+0, complete",
                   "0@1: out+320 64 B = 0:in+320 + in+320, complete"}));
  // In any stated order the contributions are added in rank order, and the operations merge.
  const Schedule mixed = make_schedule(3, 2, 1, [](int, Send send) {
    send(0, 1, block(0), reduce);
    send(2, 1, blocks(0, 2), reduce);
    send(0, 1, block(1), reduce);
  });
  EXPECT_EQ(text_of(program_of(mixed, Buffers::apart)).back(),
            "0@1: out+0 128 B = 0:in+0 + in+0 + 2:in+0, complete");
}

TEST(DataflowProgram, RanksThatNeedNothingKeepWhatTheyReceiveInScratch) {
  const CollectiveSpec to_zero{Collective::reduce, 3, 1, 0};
  const Schedule chain =
      make_schedule(3, 1, 2, [](int k, Send send) { send(2 - k, 1 - k, block(0), reduce); });
  for (const Buffers buffers : {Buffers::apart, Buffers::in_place}) {
    auto program = program_of(chain, buffers, to_zero);
    ASSERT_TRUE(program.ok()) << program.status().text();
    EXPECT_EQ(text_of(*program), (Lines{"0@1: scratch+0 64 B = in+0 + 2:in+0",
                                        "1@0: out+0 64 B = in+0 + 1:scratch+0, complete"}));
    EXPECT_EQ(program->scratch_bytes, (std::vector<std::size_t>{0, 64, 0}));
  }
}

TEST(DataflowProgram, PlanesAreScratch) {
  const Schedule by_plane = make_schedule(
      2, 1, 2,
      [](int k, Send send) {
        if (k == 0) {
          send(0, 1, block(0), block(0, 1), copy);
        } else {
          send(1, 1, block(0, 1), block(0), reduce);
        }
      },
      2);
  EXPECT_EQ(text_of(program_of(by_plane, Buffers::in_place)),
            (Lines{"0@0: out+0 64 B = in+0, if moved", "0@1: scratch+0 64 B = 0:in+0",
                   "1@1: out+0 64 B = scratch+0 + in+0, complete"}));
}

TEST(DataflowProgram, AllToAllInPlaceStagesEverything) {
  const CollectiveSpec goal{Collective::all_to_all, 2, 4};
  const Schedule exchange = make_schedule(2, 4, 1, [](int, Send send) {
    send(0, 1, block(1), copy);
    send(1, 0, block(2), copy);
  });
  auto program = program_of(exchange, Buffers::in_place, goal);
  ASSERT_TRUE(program.ok()) << program.status().text();
  for (const Operation& op : program->operations) {
    for (int i = 0; i < op.sources; ++i) {
      const Source& s = program->sources[static_cast<std::size_t>(op.first_source + i)];
      EXPECT_EQ(s.place.memory, op.round == kStaging ? Memory::input : Memory::scratch);
    }
  }
}

// A staged block that its rank overwrites while others read it needs a third place.
TEST(DataflowProgram, AStagedBlockIsNotOverwrittenWhileItIsRead) {
  const CollectiveSpec goal{Collective::all_to_all, 2, 4};
  const Schedule swap = make_schedule(2, 4, 2, [](int k, Send send) {
    if (k == 0) send(0, 1, block(1), copy);
    if (k == 1) {
      send(1, 0, block(1), copy);
      send(0, 1, block(1), copy);
    }
  });
  auto program = program_of(swap, Buffers::in_place, goal);
  ASSERT_TRUE(program.ok()) << program.status().text();
  for (const Operation& op : program->operations) {
    for (int i = 0; i < op.earlier; ++i) {
      const int reader = program->earlier[static_cast<std::size_t>(op.first_earlier + i)];
      EXPECT_LT(program->operations[static_cast<std::size_t>(reader)].round, op.round);
    }
  }
}

TEST(DataflowProgram, EmptyBlocksVanish) {
  const Schedule ring = ring_all_reduce(4);
  const CollectiveSpec goal = all_reduce_goal(ring);
  const std::vector<std::size_t> counts = {2};
  auto program =
      make_program(ring, goal, make_layout(goal, counts, 4, Borders::plain), Buffers::apart);
  ASSERT_TRUE(program.ok());
  for (const Operation& op : program->operations) EXPECT_GT(op.bytes, 0U);
  const std::vector<std::size_t> none = {0};
  program = make_program(ring, goal, make_layout(goal, none, 4, Borders::plain), Buffers::apart);
  ASSERT_TRUE(program.ok());
  EXPECT_TRUE(program->operations.empty());
}

TEST(DataflowProgram, RefusesWhatCannotBeExecuted) {
  const auto refusal = [](const Schedule& schedule, std::vector<std::size_t> counts) {
    const CollectiveSpec goal{Collective::all_gather, schedule.ranks, schedule.blocks};
    const auto program =
        make_program(schedule, goal, make_layout(goal, counts, 4, Borders::plain), Buffers::apart);
    return program.ok() ? std::string() : program.status().text();
  };
  const auto one_round = [](std::function<void(Send)> f) {
    return make_schedule(2, 2, 1, [f](int, Send send) { f(send); });
  };
  EXPECT_NE(refusal(one_round([](Send s) { s(0, 1, block(1), copy); }), {4, 4})
                .find("round 0, place 1 of rank 0: is read, but it is empty"),
            std::string::npos);
  EXPECT_NE(refusal(one_round([](Send s) { s(0, 1, block(0), block(1), copy); }), {4, 5})
                .find("place 1 of rank 1: is sent a block of another size"),
            std::string::npos);
  EXPECT_NE(refusal(one_round([](Send s) {
                      s(0, 0, block(0), block(1), copy);
                      s(1, 0, block(1), copy);
                    }),
                    {4, 4})
                .find("place 1 of rank 0: is copied to"),
            std::string::npos);
  EXPECT_NE(refusal(one_round([](Send s) {
                      s(0, 1, block(0), reduce);
                      s(1, 1, block(1), block(0), copy);
                    }),
                    {4, 4})
                .find("place 0 of rank 1: is copied to"),
            std::string::npos);
  EXPECT_NE(refusal(one_round([](Send s) { s(0, 1, blocks(0, 1), blocks(0, 2), copy); }), {4, 4})
                .find("sends 1 blocks to 2 places"),
            std::string::npos);
  EXPECT_EQ(refusal(one_round([](Send s) { s(0, 1, block(0), copy); }), {4, 4}), "");
}

}  // namespace

// Planning checks its limits throughout, and a refusal names the memory that the plan would need.

namespace {

CompileRequest request_for(Collective collective, const char* algorithm, int ranks, int segments,
                           std::size_t count) {
  CompileRequest request;
  request.algorithm = find_algorithm(collective, algorithm);
  request.params.ranks = ranks;
  request.params.segments = segments;
  request.counts.assign(static_cast<std::size_t>(natural_blocks(collective, ranks)), count);
  request.slot_payload = 48;
  request.board_bytes = 1024;
  return request;
}

// The number of times that planning asks whether to go on. If `last` is positive, planning is told
// to end at that request, and must end.
int times_asked(CompileRequest request, int last = 0) {
  int asked = 0;
  request.limits.interrupted = [&] {
    ++asked;
    return asked == last ? Status(Code::timeout, "over") : Status();
  };
  const auto compiled = compile(request);
  EXPECT_EQ(compiled.ok(), last == 0) << compiled.status().text();
  if (!compiled.ok()) {
    EXPECT_EQ(compiled.status().code(), Code::timeout);
    EXPECT_EQ(compiled.status().text(), "over");
  }
  return asked;
}

struct Way {
  const char* name;
  CompileRequest request;
};

// All passes and all transports.
std::vector<Way> ways() {
  std::vector<Way> all = {
      {"tree, pipelined", request_for(Collective::all_reduce, "double_tree", 8, 512, 1 << 20)},
      {"pushed", request_for(Collective::all_reduce, "direct_two_shot", 48, 1, 1 << 20)},
      {"copied first", request_for(Collective::all_reduce, "direct_two_shot", 48, 1, 1 << 14)},
      {"shared", request_for(Collective::broadcast, "direct_two_shot", 48, 1, 1 << 20)},
      {"many blocks", request_for(Collective::all_to_all, "bruck", 32, 1, 100)},
      {"mailbox", request_for(Collective::all_to_all, "pairwise", 48, 1, 1)},
      {"board", request_for(Collective::all_gather, "direct", 48, 1, 1)},
  };
  all[5].request.transport = Transport::mailbox;
  all[6].request.transport = Transport::board;
  return all;
}

TEST(PlanLimits, AreLookedAtAllAlong) {
  for (const Way& way : ways()) {
    SCOPED_TRACE(way.name);
    const int asked = times_asked(way.request);
    EXPECT_GE(asked, 5);
    // Planning ends at any of these requests.
    for (int last = 1; last <= asked; ++last) EXPECT_EQ(times_asked(way.request, last), last);
  }
}

TEST(PlanLimits, ChangeNoPlan) {
  for (const Way& way : ways()) {
    const auto free = compile(way.request);
    CompileRequest limited = way.request;
    limited.limits.bytes = std::size_t{64} << 20;
    limited.limits.interrupted = [] { return Status(); };
    const auto plan = compile(limited);
    ASSERT_TRUE(free.ok() && plan.ok()) << way.name;
    for (std::size_t r = 0; r < plan->plan.rank.size(); ++r) {
      EXPECT_EQ(plan->plan.rank[r].ops.size(), free->plan.rank[r].ops.size()) << way.name;
    }
  }
}

TEST(PlanLimits, APlanTooLargeSaysWhatItNeedsAndWhatNeedsLeast) {
  CompileRequest request = request_for(Collective::all_reduce, "double_tree", 60, 16384, 1 << 22);
  request.limits.bytes = std::size_t{1} << 30;
  const auto refused = compile(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::invalid_argument);
  const std::string& text = refused.status().text();
  EXPECT_NE(text.find("all_reduce among 60 ranks by double_tree with 16384 segments: to plan "
                      "3866624 moves of a block may take "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("allowed are 1024 MiB; least is "), std::string::npos) << text;
  // Planning goes on under the limit that the plan needs. The algorithm named as the least is
  // planned under a small limit.
  request.limits.bytes = planning_bytes(60, 2 * 16384, 3'866'624);
  request.limits.interrupted = [] { return Status(Code::aborted, "so far, so good"); };
  EXPECT_EQ(compile(request).status().code(), Code::aborted);
  const std::string name = text.substr(text.find("least is ") + 9);
  CompileRequest least = request_for(
      Collective::all_reduce, name.substr(0, name.find_first_of(" ,")).c_str(), 60, 1, 1 << 22);
  ASSERT_NE(least.algorithm, nullptr) << text;
  least.limits.bytes = std::size_t{1} << 20;
  EXPECT_TRUE(compile(least).ok()) << compile(least).status().text();
}

TEST(PlanLimits, WhatPassesAddCountsToo) {
  // Splitting sums makes more operations than the schedule has.
  CompileRequest request = request_for(Collective::all_reduce, "direct_one_shot", 32, 1, 1 << 16);
  request.transport = Transport::direct;
  request.limits.bytes = planning_bytes(32, 1, 32 * 31);
  const auto refused = compile(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().text().find("allowed are 1 MiB"), std::string::npos)
      << refused.status().text();
  request.limits.bytes = 4 * planning_bytes(32, 1, 32 * 31);
  EXPECT_TRUE(compile(request).ok());
}

TEST(PlanLimits, AScheduleOfOnesOwnHasNoAlgorithmToCompareWith) {
  const Schedule exchange{2, 1, 4000, [](int, Send send) {
                            send(0, 1, block(0), copy);
                            send(1, 0, block(0), copy);
                          }};
  CompileRequest request;
  request.counts = {4};
  request.slot_payload = 48;
  request.limits.bytes = std::size_t{1} << 20;
  const auto refused = compile(request, exchange, {Collective::all_reduce, 2, 1});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().text(),
            "all_reduce among 2 ranks: to plan 8000 moves of a block may take 7 MiB; allowed are 1 "
            "MiB");
}

}  // namespace
}  // namespace rankine
