#include "engine/exec/compile.h"

#include <gtest/gtest.h>

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
  CompileRequest one_line_each = request_for("ring", 4, 4 * 16);
  one_line_each.slot_payload = 64;
  auto small = compile(one_line_each);
  ASSERT_TRUE(small.ok()) << small.status().text();
  EXPECT_EQ(small->plan.transport, Transport::mailbox);
  one_line_each.slot_payload = 63;
  auto large = compile(one_line_each);
  ASSERT_TRUE(large.ok());
  EXPECT_EQ(large->plan.transport, Transport::direct);
  CompileRequest forced = request_for("ring", 4, 5);
  forced.transport = Transport::direct;
  EXPECT_EQ(compile(forced)->plan.transport, Transport::direct);
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
  EXPECT_NE(reduce->plan.fold_streaming, nullptr);
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
            "operation is bxor, type is f32; bit operations are for integers");
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
