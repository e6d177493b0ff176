#include "engine/run/fingerprint.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace rankine {
namespace {

TEST(Fingerprint, FieldsCanBeReadBack) {
  for (const Collective collective : all_collectives()) {
    for (int type = 0; type < kDataTypes; ++type) {
      for (int op = 0; op < kReduceOps; ++op) {
        const Fingerprint print = with_call(
            make_fingerprint(collective, static_cast<DataType>(type), static_cast<ReduceOp>(op),
                             op % 2 == 0, static_cast<Transport>(type % 3), 1000 + op, 100 + type,
                             12345),
            1027);
        EXPECT_EQ(print.collective(), collective);
        EXPECT_EQ(static_cast<int>(print.type()), type);
        EXPECT_EQ(static_cast<int>(print.op()), op);
        EXPECT_EQ(print.in_place(), op % 2 == 0);
        EXPECT_EQ(print.transport(), static_cast<Transport>(type % 3));
        EXPECT_EQ(print.root(), 1000 + op);
        EXPECT_EQ(print.algorithm(), 100 + type);
        EXPECT_EQ(print.call(), 3);
      }
    }
  }
}

TEST(Fingerprint, CountsDiffer) {
  std::set<int> hashes;
  for (std::uint64_t count = 0; count < 1000; ++count) {
    hashes.insert(make_fingerprint(Collective::all_reduce, DataType::f32, ReduceOp::sum, false,
                                   Transport::direct, 0, 0, count)
                      .count_hash());
  }
  EXPECT_GE(hashes.size(), 998U);  // of a million values
}

TEST(Fingerprint, DescribesCalls) {
  const auto print = [](Collective collective) {
    return make_fingerprint(collective, DataType::bf16, ReduceOp::max, false, Transport::direct, 0,
                            0, 0);
  };
  EXPECT_EQ(describe(print(Collective::all_reduce)), "all_reduce bf16 max");
  EXPECT_EQ(describe(print(Collective::all_gather)), "all_gather bf16");
}

TEST(Fingerprint, TheFirstFieldThatDiffersIsNamed) {
  const auto base = make_fingerprint(Collective::all_reduce, DataType::f32, ReduceOp::sum, false,
                                     Transport::direct, 0, 0, 1);
  const auto told = [&](Fingerprint other, std::uint64_t count = 10) {
    return difference({base, 2, 10, "ring"}, {other, 5, count, "chain"});
  };
  using enum Collective;
  const auto f32 = DataType::f32;
  const auto sum = ReduceOp::sum;
  EXPECT_EQ(told(make_fingerprint(all_gather, f32, sum, false, Transport::direct, 0, 0, 1)),
            "collective is all_reduce at rank 2 and all_gather at rank 5");
  EXPECT_EQ(told(with_call(base, 7)),
            "number of the call (modulo 256) is 0 at rank 2 and 7 at rank 5");
  EXPECT_EQ(told(make_fingerprint(all_reduce, f32, sum, false, Transport::direct, 0, 0, 2), 11),
            "count is 10 at rank 2 and 11 at rank 5");
  EXPECT_EQ(
      told(make_fingerprint(all_reduce, DataType::u8, sum, false, Transport::direct, 0, 0, 1)),
      "type is f32 at rank 2 and u8 at rank 5");
  EXPECT_EQ(
      told(make_fingerprint(all_reduce, f32, ReduceOp::max, false, Transport::direct, 0, 0, 1)),
      "operation is sum at rank 2 and max at rank 5");
  EXPECT_EQ(told(make_fingerprint(all_reduce, f32, sum, false, Transport::direct, 3, 0, 1)),
            "root is 0 at rank 2 and 3 at rank 5");
  EXPECT_EQ(told(make_fingerprint(all_reduce, f32, sum, true, Transport::direct, 0, 0, 1)),
            "in place is no at rank 2 and yes at rank 5");
  EXPECT_EQ(told(make_fingerprint(all_reduce, f32, sum, false, Transport::direct, 0, 1, 1)),
            "algorithm is ring at rank 2 and chain at rank 5");
  EXPECT_EQ(told(make_fingerprint(all_reduce, f32, sum, false, Transport::mailbox, 0, 0, 1)),
            "transport is direct at rank 2 and mailbox at rank 5");
  EXPECT_EQ(told(make_fingerprint(all_reduce, f32, sum, false, Transport::direct, 0, 0, 2)),
            "a count, a parameter, the order, the rows of an epilogue or the tag (of tensors in "
            "buckets: a shape; of a split: its options) is one at rank 2 and another at rank 5");
  EXPECT_EQ(told(with_tag(base, 1)), told(with_tag(base, 2)));
  EXPECT_EQ(with_tag(base, 0), base);
}

}  // namespace
}  // namespace rankine
