// Scans as their users see them; tests/engine/api/catalogue_sweep_test runs every line,
// user_op_test every order of operations that do not commute, order_test the levels of order.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "tests/engine/api/ranks.h"

namespace rankine {
namespace {

using Elements = std::vector<std::int64_t>;

constexpr std::int64_t kLeft = -77;  // what a result that nobody writes holds
constexpr std::optional<Transport> kWays[] = {std::nullopt, Transport::direct, Transport::mailbox,
                                              Transport::board};

std::int64_t value(Rank r, std::size_t i) {
  return (r + 1) * 1'000'003 + static_cast<std::int64_t>(i) * 7;
}

Elements input_of(Rank r, std::size_t count) {
  Elements in(count);
  for (std::size_t i = 0; i < count; ++i) in[i] = value(r, i);
  return in;
}

// Of the first `heard` ranks, or `otherwise` of none.
Elements sum_of(int heard, std::size_t count, const Elements& otherwise) {
  if (heard == 0) return otherwise;
  Elements out(count);
  for (Rank r = 0; r < heard; ++r) {
    for (std::size_t i = 0; i < count; ++i) out[i] += value(r, i);
  }
  return out;
}

void expect_ok(const std::vector<Status>& all, const std::string& what) {
  for (const Status& status : all) EXPECT_TRUE(status.ok()) << what << ": " << status.text();
}

class Scans : public testing::TestWithParam<int> {};

// Ranks need not agree on whether they call in place.
TEST_P(Scans, EveryLineOnEveryTransportInPlaceOnSomeRanks) {
  const int ranks = GetParam();
  Ranks all({.ranks = ranks, .timeout = std::chrono::minutes(2)});
  for (const Algorithm& line : catalogue()) {
    if (!is_prefix(line.collective)) continue;
    const bool exclusive = line.collective == Collective::exscan;
    for (const auto transport : kWays) {
      for (const std::size_t count :
           {std::size_t{0}, std::size_t{1}, std::size_t{57}, std::size_t{6000}}) {
        if (transport == Transport::board && count > 57) continue;  // more than boards hold
        for (int mask = 0; mask < 4; ++mask) {  // who calls in place: nobody, odd, even ranks, all
          const std::string what = std::string(name_of(line.collective)) + " " +
                                   std::string(line.name) + ", " +
                                   (transport ? std::string(name_of(*transport)) : "chosen") +
                                   ", " + std::to_string(count) + ", " + std::to_string(mask);
          expect_ok(all.run([&](Member& me) {
            const bool in_place = (mask >> (me.rank() % 2) & 1) != 0;
            Elements in = input_of(me.rank(), count), apart(count, kLeft);
            const Elements before = in;
            Elements& out = in_place ? in : apart;
            const Status status =
                me.call({.collective = line.collective,
                         .in = in.data(),
                         .out = out.data(),
                         .count = count,
                         .type = DataType::i64,
                         .options = {.algorithm = line.name, .transport = transport}});
            if (!status.ok()) return status;
            const int heard = exclusive ? me.rank() : me.rank() + 1;
            const Elements want = sum_of(heard, count, in_place ? before : Elements(count, kLeft));
            EXPECT_EQ(out, want) << what << ", rank " << me.rank();
            if (!in_place) {
              EXPECT_EQ(in, before) << what;
            }
            return status;
          }),
                    what);
        }
      }
    }
  }
}

TEST_P(Scans, TypedCallsStartedAndPreparedOnes) {
  Ranks all({.ranks = GetParam(), .timeout = std::chrono::minutes(2)});
  expect_ok(all.run([&](Member& me) -> Status {
    constexpr std::size_t kCount = 33;
    const Elements in = input_of(me.rank(), kCount), left(kCount, kLeft);
    const Elements upto = sum_of(me.rank() + 1, kCount, left),
                   before = sum_of(me.rank(), kCount, left);
    Elements out = left, data = in;
    if (Status status = me.scan(in, out); !status.ok()) return status;
    EXPECT_EQ(out, upto);
    if (Status status = me.scan(data); !status.ok()) return status;
    EXPECT_EQ(data, upto);
    out = left;
    if (Status status = me.exscan(in, out, ReduceOp::sum); !status.ok()) return status;
    EXPECT_EQ(out, before);
    out = left;
    auto prepared = me.prepared().scan(in, out);
    if (!prepared.ok()) return prepared.status();
    for (int twice = 0; twice < 2; ++twice) {
      out = left;
      if (Status status = prepared->start(); !status.ok()) return status;
      if (Status status = prepared->wait(); !status.ok()) return status;
      EXPECT_EQ(out, upto);
    }
    data = in;
    auto started = me.async().exscan(data);
    if (!started.ok()) return started.status();
    const Status status = started->wait();
    EXPECT_EQ(data, me.rank() == 0 ? in : before);
    return status;
  }),
            "typed");
}

INSTANTIATE_TEST_SUITE_P(Ranks, Scans, testing::Range(1, 10));

// Rank 0 of an exclusive scan needs no place for a result; others do.
TEST(Exscan, LeavesRankZeroWithoutAResult) {
  Ranks all({.ranks = 3, .timeout = std::chrono::minutes(2)});
  expect_ok(all.run([](Member& me) -> Status {
    const Elements in = input_of(me.rank(), 4);
    Elements out(me.rank() == 0 ? 0 : 4);
    if (Status status = me.exscan(in, out); !status.ok()) return status;
    EXPECT_EQ(out, me.rank() == 0 ? Elements() : sum_of(me.rank(), 4, {}));
    Elements short_one(3);
    const Status refused = me.exscan(in, short_one);
    EXPECT_EQ(refused.code(), Code::invalid_argument);
    EXPECT_NE(refused.text().find("out has 3 elements"), std::string::npos) << refused.text();
    const Status none = me.call(
        {.collective = Collective::exscan, .in = in.data(), .count = 4, .type = DataType::i64});
    if (me.rank() == 0) return none;
    EXPECT_EQ(none.text(), "out is null; 32 bytes are needed");
    return {};
  }),
            "rank 0 alone goes");
}

TEST(Scan, RefusesByName) {
  Ranks all({.ranks = 5, .timeout = std::chrono::minutes(2)});
  expect_ok(all.run([](Member& me) -> Status {
    std::vector<float> data(4, 1.0F);
    const std::span<float> both(data);
    EXPECT_EQ(me.scan(both, ReduceOp::avg).text(),
              "operation is avg; scan adds up another number of contributions on every rank; ask "
              "for a sum, and divide it");
    const auto started = me.async().exscan(both, ReduceOp::avg);
    EXPECT_EQ(started.status().code(), Code::invalid_argument);
    const Status tree = me.scan(both, ReduceOp::sum, {.order = Order::group_invariant});
    EXPECT_EQ(tree.text(),
              "order is group_invariant; no algorithm of scan among 5 ranks that can run here adds "
              "up their contributions in the binary tree over the ranks");
    const Status chain =
        me.scan(both, ReduceOp::sum, {.algorithm = "chain", .order = Order::by_rank});
    EXPECT_EQ(chain.code(), Code::invalid_argument);
    EXPECT_NE(
        me.scan(both, ReduceOp::sum, {.algorithm = "ring"}).text().find("scan has direct, chain"),
        std::string::npos);
    Status status = me.call({.collective = Collective::scan, .count = 4});
    EXPECT_EQ(status.text(), "in is null; 16 bytes are needed");
    status = me.call(
        {.collective = Collective::scan, .in = data.data(), .out = data.data() + 1, .count = 2});
    EXPECT_EQ(status.code(), Code::invalid_argument);
    return me.scan(both);  // it goes on
  }),
            "after refusals");
}

// Whom a rank does not hear it does not wait for; whom it does hear it names.
TEST(Scan, EndsWhereARankIsMissing) {
  for (const char* algorithm : {"direct", "chain", "binomial", "hillis_steele"}) {
    Ranks all({.ranks = 4, .timeout = std::chrono::milliseconds(200)});
    all.drop(1);
    const auto results = all.run([&](Member& me) {
      std::vector<float> data(3000, 1.0F);
      return me.scan(data, ReduceOp::sum, {.algorithm = algorithm});
    });
    for (const Rank r : {2, 3}) {
      const Status& status = results[static_cast<std::size_t>(r)];
      EXPECT_TRUE(status.code() == Code::rank_lost || status.code() == Code::timeout)
          << algorithm << ": " << status.text();
      EXPECT_NE(status.text().find("rank 1"), std::string::npos) << status.text();
    }
  }
}

TEST(Scan, IsAnotherCallThanAnAllReduce) {
  Ranks all({.ranks = 2, .timeout = std::chrono::seconds(30)});
  const auto results = all.run([](Member& me) -> Status {
    std::vector<float> data(8, 1.0F);
    if (me.rank() == 0) return me.all_reduce(data);
    return me.scan(data);
  });
  EXPECT_EQ(results[0].code(), Code::mismatch) << results[0].text();
  EXPECT_EQ(results[1].code(), Code::mismatch) << results[1].text();
}

}  // namespace
}  // namespace rankine
