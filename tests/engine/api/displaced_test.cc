// All-to-all with blocks that lie where each rank says.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "tests/engine/api/ranks.h"

namespace rankine {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Sizes = std::vector<std::size_t>;

std::uint8_t value(Rank from, Rank to, std::size_t i) {
  return static_cast<std::uint8_t>(from * 31 + to * 7 + static_cast<int>(i) + 1);
}

// Where a rank's blocks lie, in an order of its own with gaps, and how many bytes that takes.
struct Places {
  Sizes at;
  std::size_t end = 0;
};
Places places(const Sizes& sizes, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  Places out;
  out.at.resize(sizes.size());
  for (const std::size_t i : order) {
    out.end += random() % 5;
    out.at[i] = out.end;
    out.end += sizes[i];
  }
  out.end += 3;
  return out;
}

struct Mine {
  Sizes sent, received;
  Places from, to;
  Bytes in, out, want;

  Mine(Rank me, int ranks, const Sizes& counts, unsigned seed) {
    const auto n = static_cast<std::size_t>(ranks), self = static_cast<std::size_t>(me);
    for (std::size_t q = 0; q < n; ++q) {
      sent.push_back(counts[self * n + q]);
      received.push_back(counts[q * n + self]);
    }
    from = places(sent, seed * 100 + static_cast<unsigned>(me));
    to = places(received, seed * 100 + 50 + static_cast<unsigned>(me));
    in.assign(from.end, 0xee);
    out.assign(to.end, 0x5a);
    want = out;
    for (std::size_t q = 0; q < n; ++q) {
      const auto other = static_cast<Rank>(q);
      for (std::size_t i = 0; i < sent[q]; ++i) in[from.at[q] + i] = value(me, other, i);
      for (std::size_t i = 0; i < received[q]; ++i) want[to.at[q] + i] = value(other, me, i);
    }
  }
};

Sizes counts_of(int ranks, int kind) {
  Sizes counts;
  for (int pair = 0; pair < ranks * ranks; ++pair) {
    counts.push_back(kind == 0   ? static_cast<std::size_t>(pair * 5 % 11)
                     : kind == 1 ? static_cast<std::size_t>(pair % 3 == 0 ? 700 : 0)
                                 : 0);
  }
  return counts;
}

class Displaced : public testing::TestWithParam<int> {};

TEST_P(Displaced, EveryAlgorithmOnEveryTransport) {
  const int ranks = GetParam();
  Ranks all({.ranks = ranks, .timeout = std::chrono::minutes(2)});
  unsigned seed = 0;
  for (const Algorithm& line : catalogue()) {
    Params params;
    params.ranks = ranks;
    if (line.collective != Collective::all_to_all || line.refusal(params)) continue;
    for (const std::optional<Transport> transport :
         {std::optional<Transport>(), std::optional(Transport::direct),
          std::optional(Transport::mailbox)}) {
      for (const int kind : {0, 1, 2}) {
        const Sizes counts = counts_of(ranks, kind);
        ++seed;
        const auto results = all.run([&](Member& me) -> Status {
          const CallOptions options{.algorithm = line.name, .transport = transport};
          Mine one(me.rank(), ranks, counts, seed);
          Status status = me.all_to_all(one.in, one.out, counts, {one.from.at, one.to.at}, options);
          if (!status.ok()) return status;
          EXPECT_EQ(one.out, one.want) << line.name << ", rank " << me.rank();
          // Ready, and started twice: what is sent is read when it begins.
          Mine two(me.rank(), ranks, counts, seed + 1000);
          Bytes out(two.out);
          auto request =
              me.prepared().all_to_all(two.in, out, counts, {two.from.at, two.to.at}, options);
          if (!request.ok()) return request.status();
          for (int twice = 0; twice < 2; ++twice) {
            std::fill(out.begin(), out.end(), std::uint8_t{0x5a});
            if (status = request->start(); !status.ok()) return status;
            if (status = request->wait(); !status.ok()) return status;
            EXPECT_EQ(out, two.want) << line.name << ", rank " << me.rank();
          }
          return status;
        });
        for (const Status& status : results) EXPECT_TRUE(status.ok()) << status.text();
      }
    }
  }
}

// Ranks as they like: both lists, one of them, or a call without.
TEST_P(Displaced, RanksNeedNotDoAlike) {
  const int ranks = GetParam();
  Ranks all({.ranks = ranks, .timeout = std::chrono::minutes(2)});
  const Sizes counts = counts_of(ranks, 0);
  for (int turn = 0; turn < 4; ++turn) {
    const auto results = all.run([&](Member& me) -> Status {
      const int way = (me.rank() + turn) % 4;
      Mine mine(me.rank(), ranks, counts, 9);
      Bytes dense_in, dense_want;
      for (Rank q = 0; q < ranks; ++q) {
        const auto other = static_cast<std::size_t>(q);
        for (std::size_t i = 0; i < mine.sent[other]; ++i)
          dense_in.push_back(value(me.rank(), q, i));
        for (std::size_t i = 0; i < mine.received[other]; ++i)
          dense_want.push_back(value(q, me.rank(), i));
      }
      Bytes dense_out(dense_want.size());
      const bool in_list = (way & 1) != 0, out_list = (way & 2) != 0;
      Displacements places;
      if (in_list) places.in = mine.from.at;
      if (out_list) places.out = mine.to.at;
      Bytes& in = in_list ? mine.in : dense_in;
      Bytes& out = out_list ? mine.out : dense_out;
      // A few started ones behind one another.
      auto first = me.async().all_to_all(in, out, counts, places);
      if (!first.ok()) return first.status();
      Status status = me.all_to_all(in, out, counts, places);
      if (status.ok()) status = first->wait();
      EXPECT_EQ(out, out_list ? mine.want : dense_want) << "rank " << me.rank() << ", way " << way;
      return status;
    });
    for (const Status& status : results) EXPECT_TRUE(status.ok()) << status.text();
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Displaced, testing::Range(1, 10));

// Results over what was sent: all of that is on its way by then.
TEST(Displacement, InAndOutMayOverlap) {
  Ranks all({.ranks = 3, .timeout = std::chrono::minutes(2)});
  const auto results = all.run([](Member& me) -> Status {
    std::vector<std::int32_t> data(4, me.rank());
    const Sizes from = {0, 4, 8}, to = {12, 8, 4};  // bytes
    const Sizes counts(9, 1);
    Status status =
        me.all_to_all(std::span<const std::int32_t>(data), std::span(data), counts, {from, to});
    EXPECT_EQ(data, (std::vector<std::int32_t>{me.rank(), 2, 1, 0}));
    // One element for all, without a copy of it for each.
    const Sizes same = {4, 4, 4};
    std::vector<std::int32_t> out(3);
    if (status.ok()) status = me.all_to_all(data, out, counts, {same, {}});
    EXPECT_EQ(out, (std::vector<std::int32_t>{2, 2, 2}));
    return status;
  });
  for (const Status& status : results) EXPECT_TRUE(status.ok()) << status.text();
}

TEST(Displacement, WhatIsWrongIsNamed) {
  Ranks all({.ranks = 2, .timeout = std::chrono::minutes(2)});
  const auto results = all.run([](Member& me) -> Status {
    std::vector<std::int32_t> in(8, 1), out(8);
    const Sizes counts = {2, 2, 2, 2};
    const auto text = [&](const Displacements& places) {
      const Status status = me.all_to_all(in, out, counts, places);
      EXPECT_EQ(status.code(), Code::invalid_argument);
      EXPECT_EQ(me.async().all_to_all(in, out, counts, places).status().text(), status.text());
      return status.text();
    };
    const Sizes good = {0, 8}, three = {0, 8, 16}, overlap = {4, 0}, far = {0, 28},
                huge = {0, std::numeric_limits<std::size_t>::max() - 3};
    EXPECT_EQ(text({three, good}), "displacements.in has 3 entries; allowed are none or 2");
    EXPECT_EQ(text({good, three}), "displacements.out has 3 entries; allowed are none or 2");
    EXPECT_EQ(text({good, overlap}),
              "displacements.out[0] is 4, but 8 bytes from rank 1 lie from 0 on; what is received "
              "may not overlap");
    EXPECT_EQ(text({far, good}), "in has 32 bytes; the block to rank 1 ends at byte 36");
    EXPECT_EQ(text({good, far}), "out has 32 bytes; the block from rank 1 ends at byte 36");
    EXPECT_EQ(text({huge, good}),
              "displacements.in[1] is 18446744073709551612; allowed are 0 to 9223372036854775799");
    const Displacements places{good, good};
    Call call{.collective = Collective::all_reduce,
              .in = in.data(),
              .out = out.data(),
              .count = 2,
              .type = DataType::i32,
              .displacements = &places};
    EXPECT_EQ(me.call(call).text(),
              "displacements are given to all_reduce; they are for all_to_all");
    EXPECT_EQ(me.start(call).status().code(), Code::invalid_argument);
    call.collective = Collective::all_to_all;
    call.in = nullptr;
    EXPECT_EQ(me.call(call).text(), "in is null; it has blocks of 16 bytes");
    call.in = in.data();
    call.out = nullptr;
    EXPECT_EQ(me.call(call).text(), "out is null; it has blocks of 16 bytes");
    call.count = 0;
    EXPECT_TRUE(me.call(call).ok());  // nothing needs no buffer
    call.counts = good;
    EXPECT_EQ(me.call(call).text(), "counts has 2 entries; all_to_all among 2 ranks needs 4");
    return me.all_to_all(in, out, counts, places);  // it goes on
  });
  for (const Status& status : results) EXPECT_TRUE(status.ok()) << status.text();
}

TEST(Displacement, AMissingRankEndsTheCall) {
  Ranks all({.ranks = 3, .timeout = std::chrono::milliseconds(200)});
  all.drop(2);
  const auto results = all.run([](Member& me) -> Status {
    std::vector<std::int32_t> in(3, 1), out(3, 9);
    const Sizes at = {8, 4, 0}, counts(9, 1);
    const Status status = me.all_to_all(in, out, counts, {at, at});
    EXPECT_EQ(out, std::vector<std::int32_t>(3, 9));  // nothing was handed out
    return status;
  });
  for (const Rank r : {0, 1}) {
    const Code code = results[static_cast<std::size_t>(r)].code();
    EXPECT_TRUE(code == Code::rank_lost || code == Code::timeout);
  }
}

}  // namespace
}  // namespace rankine
