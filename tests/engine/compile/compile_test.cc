#include "engine/compile/compile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "algorithms/ring.h"

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
  // Four blocks of 64 bytes each: of an all-reduce the vector must fit, elsewhere the blocks.
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

// Each rank with a core of its own, and where they share cores.
TEST(Compile, WhoHasACoreReadsWhatIsLongWhereItLies) {
  const auto chosen = [](CompileRequest request, std::size_t board_bytes) {
    request.board_bytes = board_bytes;
    request.slot_payload = 1024;
    auto compiled = compile(request);
    EXPECT_TRUE(compiled.ok()) << compiled.status().text();
    return compiled->plan.transport;
  };
  // Vectors of 512 bytes, 4 KiB in all, and a little more.
  CompileRequest shot = request_for("direct_one_shot", 8, 128);
  EXPECT_EQ(chosen(shot, 8192), Transport::board);
  shot.counts = {129};
  EXPECT_EQ(chosen(shot, 8192), Transport::direct);
  shot.costs = where_cores_are_shared({});
  EXPECT_EQ(chosen(shot, 8192), Transport::board);
  // Seven messages of one line, and of two; one message may be as long as the slot.
  CompileRequest told;
  told.algorithm = find_algorithm(Collective::broadcast, "linear");
  told.params.ranks = 8;
  told.counts = {12};
  EXPECT_EQ(chosen(told, 0), Transport::mailbox);
  told.counts = {13};
  EXPECT_EQ(chosen(told, 0), Transport::direct);
  told.costs = where_cores_are_shared({});
  EXPECT_EQ(chosen(told, 0), Transport::mailbox);
  told.costs = {};
  told.counts = {256};
  told.params.ranks = 2;
  EXPECT_EQ(chosen(told, 0), Transport::mailbox);
}

// Of another's board a rank reads 512 bytes at most where all have a core: all that is posted, or a
// part.
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
    EXPECT_TRUE(on_board(collective, 2048, where_cores_are_shared({}))) << name_of(collective);
    EXPECT_TRUE(on_board(collective, 2048, where_all_is_staged({}))) << name_of(collective);
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
  // A block of 16 bytes for each of them; the rank's own may lie between.
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
  // Large ones do: the other rank reads what the sum overwrites.
  CompileRequest large = request_for("direct_one_shot", 2, 400);
  large.buffers = Buffers::in_place;
  EXPECT_EQ(folds(compile(large)->plan, 0), 2);
}

TEST(Compile, RoundsOfManyMessagesAreStillMadeOfSmallOnes) {
  // More messages of one pair in a round than a mailbox may have under way.
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
    EXPECT_TRUE(pushes(8, 64 * kKiB, buffers, where_cores_are_shared({})));
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
  // Of six steps of a ring these two: the sum that is pushed, and the block that comes last. All
  // others are read again.
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
  EXPECT_EQ(refused.status().text(), "schedule: adds blocks up, which all_gather does not");
}

}  // namespace
}  // namespace rankine
