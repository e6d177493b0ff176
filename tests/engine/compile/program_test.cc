#include "engine/compile/program.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "algorithms/direct.h"
#include "algorithms/recursive_doubling.h"
#include "algorithms/ring.h"
#include "algorithms/schedule/combine.h"

namespace rankine {
namespace {

Goal all_reduce_goal(const Schedule& schedule) {
  return {Collective::all_reduce, schedule.ranks, schedule.blocks};
}

// 16 elements of 4 bytes per block.
Result<Program> program_of(const Schedule& schedule, Buffers buffers, Goal goal) {
  const auto natural = static_cast<std::size_t>(natural_blocks(goal.collective, goal.ranks));
  const auto parts = static_cast<std::size_t>(goal.blocks) / natural;
  const std::vector<std::size_t> counts(natural, 16 * parts);
  return make_program(schedule, goal, make_layout(goal, counts, 4, Borders::plain), buffers);
}
Program program_of(const Schedule& schedule, Buffers buffers) {
  auto program = program_of(schedule, buffers, all_reduce_goal(schedule));
  program.status().throw_if_error();
  return std::move(*program);
}

std::string text_of(const Place& place) {
  constexpr const char* kNames[] = {"in", "out", "scratch", "message"};
  return std::string(kNames[static_cast<int>(place.memory)]) + "+" + std::to_string(place.offset);
}

// "0@1: out+0 64 B = in+0 + 1:in+0": an operation of round 0 at rank 1.
std::vector<std::string> text_of(const Program& program) {
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

TEST(Program, AnExchangeApartWritesOutputsAndReadsInputs) {
  EXPECT_EQ(text_of(program_of(recursive_doubling_all_reduce(2), Buffers::apart)),
            (Lines{"0@1: out+0 64 B = 0:in+0 + in+0, complete",
                   "0@0: out+0 64 B = in+0 + 1:in+0, complete"}));
}

TEST(Program, AnExchangeInPlaceStagesInputsThatTheOtherStillReads) {
  const Program program = program_of(recursive_doubling_all_reduce(2), Buffers::in_place);
  EXPECT_EQ(text_of(program), (Lines{"-1@0: scratch+0 64 B = in+0", "-1@1: scratch+0 64 B = in+0",
                                     "0@1: out+0 64 B = 0:scratch+0 + scratch+0, complete",
                                     "0@0: out+0 64 B = scratch+0 + 1:scratch+0, complete"}));
  EXPECT_EQ(program.scratch_bytes, (std::vector<std::size_t>{64, 64}));
}

TEST(Program, ExchangesOfManyRoundsAlternateBetweenPlaces) {
  // The last version is in the output; each one before is read while the next is written.
  const Lines lines = text_of(program_of(recursive_doubling_all_reduce(8), Buffers::apart));
  ASSERT_EQ(lines.size(), 24U);
  for (std::size_t i = 0; i < 24; ++i) {
    const std::string place = i / 8 == 1 ? ": scratch+0 64 B" : ": out+0 64 B";
    EXPECT_NE(lines[i].find(place), std::string::npos) << lines[i];
  }
}

TEST(Program, InPlaceTheFirstOfManyVersionsGoesToScratch) {
  // v0 in the shared memory, v1 may not overwrite it, v2 may (v0 is read no more).
  const Program program = program_of(recursive_doubling_all_reduce(4), Buffers::in_place);
  for (const std::string& line : text_of(program)) {
    const bool first = line.starts_with("0@");
    EXPECT_NE(line.find(first ? ": scratch+0" : ": out+0"), std::string::npos) << line;
  }
  // With three versions: scratch for the first two, in two different places.
  for (const std::string& line :
       text_of(program_of(recursive_doubling_all_reduce(8), Buffers::in_place))) {
    const char* wanted = line.starts_with("0@")   ? ": scratch+64"
                         : line.starts_with("1@") ? ": scratch+0"
                                                  : ": out+0";
    EXPECT_NE(line.find(wanted), std::string::npos) << line;
  }
}

TEST(Program, AChainInPlaceNeedsNoScratch) {
  // Everyone adds to what it has and hands it on: nobody reads what is being replaced.
  const Schedule chain = make_schedule(3, 1, 4, [](int k, Send send) {
    if (k < 2) {
      send(k, k + 1, block(0), reduce);
    } else {
      send(4 - k, 3 - k, block(0), copy);
    }
  });
  const Program program = program_of(chain, Buffers::in_place);
  EXPECT_EQ(text_of(program),
            (Lines{"0@1: out+0 64 B = 0:in+0 + in+0", "1@2: out+0 64 B = 1:out+0 + in+0, complete",
                   "2@1: out+0 64 B = 2:out+0, after 1", "3@0: out+0 64 B = 1:out+0, after 1"}));
  EXPECT_EQ(program.scratch_bytes, (std::vector<std::size_t>{0, 0, 0}));
}

TEST(Program, ARingApartReadsInputsFirst) {
  for (const Buffers buffers : {Buffers::apart, Buffers::in_place}) {
    const Program program = program_of(ring_all_reduce(3), buffers);
    EXPECT_EQ(program.operations.size(), 12U);  // two per rank and phase
    EXPECT_EQ(program.scratch_bytes, (std::vector<std::size_t>{0, 0, 0}));
  }
}

TEST(Program, ReductionsOfOneRoundFuseInTheOrderOfTheirLowestRank) {
  const Schedule all_to_zero = make_schedule(4, 1, 1, [](int, Send send) {
    send(2, 0, block(0), reduce);
    send(ranks_from(3, 2), 0, block(0), reduce);  // 3, then 0 itself once more
    send(1, 0, block(0), reduce);
  });
  EXPECT_EQ(text_of(program_of(all_to_zero, Buffers::apart))[3],
            "0@0: out+0 64 B = in+0 + in+0 + 1:in+0 + 2:in+0 + 3:in+0");
}

// A partial sum counts as its lowest contribution, wherever it comes from.
TEST(Program, PartialSumsAreAddedInTheOrderOfTheirLowestRank) {
  const Schedule schedule = make_schedule(4, 1, 2, [](int k, Send send) {
    if (k == 0) send(0, 3, block(0), reduce);  // rank 3 has 0 + 3
    if (k == 1) send(ranks_from(2, 2), 1, block(0), reduce);
  });
  const Lines lines = text_of(program_of(schedule, Buffers::apart));
  EXPECT_EQ(lines[lines.size() - 1], "1@1: out+0 64 B = 3:out+0 + in+0 + 2:in+0, complete");
}

TEST(Program, OwnBlocksThatNobodyWritesAreCopiedOnceAndOnlyIfMoved) {
  const Schedule nothing_at_all = nothing(2, 3);
  EXPECT_EQ(text_of(program_of(nothing_at_all, Buffers::apart)),
            (Lines{"0@0: out+0 192 B = in+0, if moved", "0@1: out+0 192 B = in+0, if moved"}));
  const Goal gather{Collective::all_gather, 3, 3};
  auto program = program_of(ring_all_gather(3), Buffers::apart, gather);
  ASSERT_TRUE(program.ok()) << program.status().text();
  const Lines lines = text_of(*program);
  EXPECT_EQ(lines[0], "0@0: out+0 64 B = in+0, if moved");
  EXPECT_EQ(lines[1], "0@1: out+64 64 B = in+0, if moved");
  EXPECT_EQ(lines[2], "0@2: out+128 64 B = in+0, if moved");
}

TEST(Program, NeighboursThatTravelTogetherAreOneOperation) {
  const Schedule pairs = make_schedule(2, 6, 1, [](int, Send send) {
    send(0, 1, blocks(0, 4), reduce);
    send(0, 1, block(5), reduce);
  });
  EXPECT_EQ(text_of(program_of(pairs, Buffers::apart)),
            (Lines{"0@0: out+0 384 B = in+0, if moved", "0@1: out+256 64 B = in+256, if moved",
                   "0@1: out+0 256 B = 0:in+0 + in+0, complete",
                   "0@1: out+320 64 B = 0:in+320 + in+320, complete"}));
  // Whatever order a round states them in, they are added in one, and merge.
  const Schedule mixed = make_schedule(3, 2, 1, [](int, Send send) {
    send(0, 1, block(0), reduce);
    send(2, 1, blocks(0, 2), reduce);
    send(0, 1, block(1), reduce);
  });
  EXPECT_EQ(text_of(program_of(mixed, Buffers::apart)).back(),
            "0@1: out+0 128 B = 0:in+0 + in+0 + 2:in+0, complete");
}

TEST(Program, RanksThatNeedNothingKeepWhatTheyReceiveInScratch) {
  const Goal to_zero{Collective::reduce, 3, 1, 0};
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

TEST(Program, PlanesAreScratch) {
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

TEST(Program, AllToAllInPlaceStagesEverything) {
  const Goal goal{Collective::all_to_all, 2, 4};
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
TEST(Program, AStagedBlockIsNotOverwrittenWhileItIsRead) {
  const Goal goal{Collective::all_to_all, 2, 4};
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

TEST(Program, EmptyBlocksVanish) {
  const Schedule ring = ring_all_reduce(4);
  const Goal goal = all_reduce_goal(ring);
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

TEST(Program, RefusesWhatCannotBeExecuted) {
  const auto refusal = [](const Schedule& schedule, std::vector<std::size_t> counts) {
    const Goal goal{Collective::all_gather, schedule.ranks, schedule.blocks};
    const auto program =
        make_program(schedule, goal, make_layout(goal, counts, 4, Borders::plain), Buffers::apart);
    return program.ok() ? std::string() : program.status().text();
  };
  const auto one_round = [](std::function<void(Send)> f) {
    return make_schedule(2, 2, 1, [f](int, Send send) { f(send); });
  };
  EXPECT_NE(refusal(one_round([](Send s) { s(0, 1, block(1), copy); }), {4, 4})
                .find("round 0, place 1 of rank 0: is read, and nothing is there"),
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
}  // namespace rankine
