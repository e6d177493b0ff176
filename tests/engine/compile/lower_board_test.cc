// Posts: what is posted and where, who waits for whom, and what no board holds.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/compile/compile.h"
#include "tests/engine/run/random_call.h"

namespace rankine {
namespace {

CompileRequest request_for(Collective collective, const char* name, int ranks,
                           std::vector<std::size_t> counts) {
  CompileRequest request;
  request.algorithm = find_algorithm(collective, name);
  request.params.ranks = ranks;
  request.counts = std::move(counts);
  request.slot_payload = 48;
  request.board_bytes = 1024;
  return request;
}

// "post 16+8 wait 1 fold ...": ops of a rank, with offsets and bytes of posts.
std::string text_of(const Plan& plan, Rank r) {
  std::string text;
  for (const Op& op : plan.rank[static_cast<std::size_t>(r)].ops) {
    switch (op.code) {
      case OpCode::post:
        text += (op.flags & kMoreToPost) != 0 ? "post and " : "post ";
        if (op.operands > 0)
          text += std::to_string(op.offset) + "+" + std::to_string(op.bytes) + " ";
        break;
      case OpCode::wait_post:
        text += "wait " + std::to_string(op.peer) + " ";
        break;
      case OpCode::wait_posts:
        text += "wait all ";
        break;
      case OpCode::fold:
        text += "fold ";
        break;
      case OpCode::end:
        text += "end";
        break;
      default:
        text += "? ";
    }
  }
  return text;
}

std::string text_of(const CompileRequest& request, Rank r) {
  const auto compiled = compile(request);
  return compiled.ok() ? text_of(compiled->plan, r) : compiled.status().text();
}

TEST(LowerBoard, AVectorIsPostedOnceAndNobodyWaitsAtTheEnd) {
  using enum Collective;
  EXPECT_EQ(text_of(request_for(all_reduce, "direct_one_shot", 2, {2}), 0),
            "post 16+8 wait 1 fold end");
  // Among more ranks one op waits for all; beyond the header's line data begin on the next.
  EXPECT_EQ(text_of(request_for(all_reduce, "direct_one_shot", 4, {12}), 3),
            "post 16+48 wait all fold end");
  EXPECT_EQ(text_of(request_for(all_reduce, "direct_one_shot", 4, {13}), 3),
            "post 64+52 wait all fold end");
}

TEST(LowerBoard, InPlaceNothingIsStaged) {
  CompileRequest request = request_for(Collective::all_reduce, "direct_one_shot", 3, {100});
  request.buffers = Buffers::in_place;
  EXPECT_EQ(text_of(request, 1), "post 64+400 wait all fold end");
}

TEST(LowerBoard, OnlyWhatOthersWantIsPosted) {
  // Rank 0's own block comes first and is nobody else's; rank 1's lies between two.
  const CompileRequest request = request_for(Collective::reduce_scatter, "direct", 3, {20, 20, 20});
  EXPECT_EQ(text_of(request, 0), "post 64+160 wait all fold end");
  EXPECT_EQ(text_of(request, 1), "post 64+240 wait all fold end");
}

TEST(LowerBoard, EachRoundWithMessagesHasAPost) {
  EXPECT_EQ(text_of(request_for(Collective::all_reduce, "direct_two_shot", 3, {48}), 0),
            "post 64+128 wait all fold post 64+64 wait 2 fold wait 1 fold end");
}

// What makes two halves enough: who reads nothing of a rank waits for it too.
TEST(LowerBoard, EverybodyMeetsEverybody) {
  CompileRequest request = request_for(Collective::broadcast, "linear", 3, {2});
  request.transport = Transport::board;
  EXPECT_EQ(text_of(request, 0), "post 16+8 fold wait 1 wait 2 post 16+8 wait 1 wait 2 end");
  EXPECT_EQ(text_of(request, 1), "post wait 0 fold wait 2 post wait 0 wait 2 end");
}

TEST(LowerBoard, AskedForWhereNothingFitsItSaysSo) {
  CompileRequest request = request_for(Collective::all_reduce, "direct_one_shot", 2, {257});
  request.transport = Transport::board;
  EXPECT_EQ(text_of(request, 0),
            "board: others want 1028 bytes of rank 0 in a round; allowed are 1024");
  request.board_bytes = 2048;
  EXPECT_EQ(text_of(request, 0), "post 64+1028 wait 1 fold end");
}

// Unasked, boards are taken where they add no wait and hold what there is.
TEST(LowerBoard, IsChosenWhereEverybodyHearsFromEverybody) {
  using enum Collective;
  const auto chosen = [](const CompileRequest& request) {
    const auto compiled = compile(request);
    EXPECT_TRUE(compiled.ok()) << compiled.status().text();
    return compiled->plan.transport;
  };
  CompileRequest request = request_for(all_reduce, "direct_one_shot", 4, {256});
  EXPECT_EQ(chosen(request), Transport::board);
  request.board_bytes = 0;
  EXPECT_EQ(chosen(request), Transport::direct);
  request.board_bytes = 1023;
  EXPECT_EQ(chosen(request), Transport::direct);
  EXPECT_EQ(chosen(request_for(all_gather, "direct", 3, {4, 4, 4})), Transport::board);
  EXPECT_EQ(chosen(request_for(all_gather, "direct", 3, {4, 4, 0})), Transport::mailbox)
      << "nobody hears from the last rank";
  EXPECT_EQ(chosen(request_for(broadcast, "linear", 3, {2})), Transport::mailbox);
  EXPECT_EQ(chosen(request_for(all_reduce, "ring", 3, {2})), Transport::mailbox);
  EXPECT_EQ(chosen(request_for(all_reduce, "direct_one_shot", 1, {2})), Transport::mailbox);
  // Vectors that boards do not hold go direct where slots are larger than boards.
  CompileRequest large = request_for(all_reduce, "direct_one_shot", 2, {257});
  large.slot_payload = 2048;
  EXPECT_EQ(chosen(large), Transport::direct);
}

}  // namespace
}  // namespace rankine
