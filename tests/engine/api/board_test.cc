// Boards from outside: which calls take them, calls of all transports in turn, calls that disagree.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <latch>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/environment.h"
#include "engine/api/team.h"
#include "engine/api/tuning/choose.h"
#include "tests/engine/api/ranks.h"
#include "tests/engine/api/until_it_waits.h"
#include "tests/engine/run/random.h"

namespace rankine {
namespace {

using Words = std::vector<std::uint32_t>;
constexpr std::chrono::milliseconds kLong{120'000};
constexpr std::chrono::milliseconds kSoon{300};

std::uint32_t sum_of_ranks(int ranks) {
  return static_cast<std::uint32_t>(ranks * (ranks - 1) / 2);
}

Status reduce_words(Member& me, std::size_t count, std::uint32_t salt, bool in_place) {
  Words in(count, static_cast<std::uint32_t>(me.rank()) + salt), out(count);
  const Status status = in_place
                            ? me.all_reduce(std::span(in))
                            : me.all_reduce(std::span<const std::uint32_t>(in), std::span(out));
  const auto n = static_cast<std::uint32_t>(me.ranks());
  if (status.ok()) {
    EXPECT_EQ(in_place ? in : out, Words(count, sum_of_ranks(me.ranks()) + n * salt))
        << "rank " << me.rank() << ", " << count << " words";
  }
  return status;
}

TEST(Board, SmallCallsInWhichAllHearFromAllTakeIt) {
  for (const int ranks : {2, 4}) {
    auto team = Team::create({.ranks = ranks, .tuned = false});
    ASSERT_TRUE(team.ok()) << team.status().text();
    const Status status = (*team)->run([](Member& me) {
      Words data(8), wide(8 * static_cast<std::size_t>(me.ranks()));
      const auto transport_of = [&](Collective collective, std::size_t count) {
        const auto plan = me.plan_of({.collective = collective,
                                      .in = data.data(),
                                      .out = wide.data(),
                                      .count = count,
                                      .type = DataType::u32});
        plan.status().throw_if_error();
        return plan->substr(plan->find(' ') + 1);
      };
      EXPECT_EQ(transport_of(Collective::all_reduce, 8), "board transport");
      EXPECT_EQ(transport_of(Collective::all_gather, 8), "board transport");
      EXPECT_EQ(transport_of(Collective::reduce_scatter, 8), "board transport");
      EXPECT_EQ(transport_of(Collective::all_to_all, 8), "board transport");
      EXPECT_EQ(transport_of(Collective::broadcast, 8), "mailbox transport");
      EXPECT_EQ(transport_of(Collective::all_reduce, 1 << 20), "direct transport");
    });
    EXPECT_TRUE(status.ok()) << status.text();
  }
}

// The largest vector that goes in one shot among more than two ranks goes by boards, but where
// ranks with a core each may read it where it lies.
TEST(Board, HoldsWhatOneShotTakes) {
  const Costs own, shared = where_cores_are_shared({}), staged = where_all_is_staged({});
  for (const int ranks : {3, 4, 8, 16, 17, 32, 33, 64, 256}) {
    for (const auto& [costs, buffers] : {std::pair(own, Buffers::in_place),
                                         {shared, Buffers::in_place},
                                         {shared, Buffers::apart},
                                         {staged, Buffers::in_place},
                                         {staged, Buffers::apart}}) {
      const auto name = [&](std::size_t bytes) {
        return default_algorithm(Collective::all_reduce, ranks, bytes, buffers, costs).name;
      };
      std::size_t most = 8;
      while (name(most + 8) == "direct_one_shot") most += 8;
      EXPECT_LE(most, board_bytes(ranks, costs)) << ranks << " ranks";
      EXPECT_GE(most, 16U) << ranks << " ranks";
      EXPECT_EQ(name(most + 8), "direct_two_shot");
    }
    EXPECT_EQ(
        default_algorithm(Collective::all_reduce, ranks,
                          own.one_shot_read / static_cast<std::size_t>(ranks), Buffers::apart, own)
            .name,
        "direct_one_shot");
  }
}

// Posts, calls in which some meet nobody, calls by address and in slots, of any size, in place or
// not, over the wrap of all counters.
TEST(Board, TakesTurnsWithAllOtherCalls) {
  for (const int ranks : {2, 3, 4, 7}) {
    for (const std::uint32_t first : {0U, 0U - 21U, 0x80000000U - 21U}) {
      const FirstCount near_the_wrap(first);
      Ranks all({.ranks = ranks, .timeout = kLong, .tuned = false});
      const auto results = all.run([&](Member& me) -> Status {
        Random random(static_cast<std::uint64_t>(ranks) * 1000 + first % 1000);
        for (int i = 0; i < 300; ++i) {
          Status status;
          const auto salt = static_cast<std::uint32_t>(i);
          switch (random.below(5)) {
            case 0: {  // a root that waits for nobody, or only some who wait for it
              const Rank root = random.below(ranks);
              Words data(random.one_in(3) ? 3'000U : 5U,
                         me.rank() == root ? salt : ~std::uint32_t{0});
              status = me.broadcast(std::span(data), root);
              EXPECT_EQ(data, Words(data.size(), salt));
              break;
            }
            case 1: {
              const auto n = static_cast<std::size_t>(ranks);
              Words in(static_cast<std::size_t>(random.between(1, 20))), out(in.size() * n);
              std::fill(in.begin(), in.end(), static_cast<std::uint32_t>(me.rank()));
              status = me.all_gather(std::span<const std::uint32_t>(in), std::span(out));
              for (std::size_t q = 0; q < n; ++q) EXPECT_EQ(out[q * in.size()], q);
              break;
            }
            case 2:
              status = me.barrier();
              break;
            default:
              status = reduce_words(me,
                                    static_cast<std::size_t>(random.pick(std::vector<int>{
                                        1, 2, 12, 13, 100, 256, 257, 1'000, 5'000})),
                                    salt, random.one_in(2));
          }
          if (!status.ok()) return status;
        }
        return {};
      });
      for (const Status& status : results) EXPECT_TRUE(status.ok()) << status.text();
    }
  }
}

// A rank that has left a run still has its post read by slower ones, and finds its place again.
TEST(Board, RunsOfATeamFollowOneAnother) {
  auto team = Team::create({.ranks = 4, .timeout = kLong, .tuned = false});
  ASSERT_TRUE(team.ok()) << team.status().text();
  for (std::uint32_t run = 0; run < 200; ++run) {
    const Status status = (*team)->run([&](Member& me) {
      for (std::uint32_t i = 0; i < 1 + run % 3; ++i) {
        reduce_words(me, 1 + run % 40, run + i, run % 2 == 0).throw_if_error();
      }
    });
    ASSERT_TRUE(status.ok()) << status.text();
  }
}

TEST(Board, CallsThatDisagreeAreFoundOut) {
  const auto ends_with = [](const std::function<void(Call&)>& change, const std::string& text) {
    Ranks ranks({.ranks = 3, .timeout = kLong, .tuned = false});
    const auto results = ranks.run([&](Member& me) {
      Status status;
      for (int i = 0; i < 10 && status.ok(); ++i) {
        Words in(64), out(64);
        Call call{.in = in.data(), .out = out.data(), .count = 16, .type = DataType::u32};
        if (me.rank() == 1 && i == 5) change(call);
        status = me.call(call);
      }
      return status;
    });
    for (const Status& status : results) {
      EXPECT_EQ(name_of(status.code()), name_of(Code::mismatch)) << status.text();
      EXPECT_NE(status.text().find(text), std::string::npos) << status.text();
    }
  };
  ends_with([](Call& call) { call.count = 15; }, "count is");
  ends_with([](Call& call) { call.op = ReduceOp::max; }, "operation is");
  ends_with([](Call& call) { call.options.transport = Transport::direct; }, "transport is");
  ends_with([](Call& call) { call.options.transport = Transport::mailbox; }, "transport is");
  ends_with([](Call& call) { call.options.algorithm = "ring"; }, "algorithm is");
  ends_with([](Call& call) { call.collective = Collective::reduce_scatter; }, "collective is");
}

// Different calls that concern nobody's board leave no trace there but in the past.
TEST(Board, WhatWentWrongUnnoticedIsFoundOutInTheNextPost) {
  Ranks ranks({.ranks = 3, .timeout = kLong, .tuned = false});
  const auto results = ranks.run([](Member& me) -> Status {
    Words word(1);
    // Rank 0 sends to rank 1; rank 2 takes part in nothing, whatever it says.
    const Status status = me.send_recv(std::span(word), 0, me.rank() == 2 ? 0 : 1);
    if (!status.ok()) return status;
    return reduce_words(me, 4, 0, true);
  });
  for (const Status& status : results) {
    EXPECT_EQ(name_of(status.code()), name_of(Code::mismatch)) << status.text();
  }
}

TEST(Board, ARankThatDoesNotComeIsNamed) {
  Ranks ranks({.ranks = 3, .timeout = kLong, .tuned = false});
  std::latch failed(1);  // rank 2's thread lives until then: the end of a thread would be another failure
  const auto results = ranks.run([&](Member& me) {
    const Status first = reduce_words(me, 4, 0, true);
    if (me.rank() == 2) failed.wait();
    if (me.rank() == 2 || !first.ok()) return first;
    if (me.rank() == 1) return reduce_words(me, 4, 1, true);
    until_it_waits(ranks.communicator(), 1);
    Words data(4);
    const Status status = me.all_reduce(std::span(data), ReduceOp::sum, {.timeout = kSoon});
    failed.count_down();
    return status;
  });
  EXPECT_TRUE(results[2].ok()) << results[2].text();
  for (const Rank r : {0, 1}) {
    const Status& status = results[static_cast<std::size_t>(r)];
    EXPECT_EQ(name_of(status.code()), name_of(Code::timeout)) << status.text();
    EXPECT_NE(status.text().find("waits for rank 2"), std::string::npos) << status.text();
  }
}

TEST(Board, WhatDoesNotFitIsRefusedWhereItIsAskedFor) {
  Ranks ranks({.ranks = 2, .timeout = kLong, .tuned = false});
  const auto results = ranks.run([](Member& me) -> Status {
    Words data(40'000);
    const Status refused =
        me.all_reduce(std::span(data), ReduceOp::sum, {.transport = Transport::board});
    EXPECT_EQ(name_of(refused.code()), name_of(Code::invalid_argument)) << refused.text();
    return reduce_words(me, 4, 1, true);  // the communicator goes on
  });
  for (const Status& status : results) EXPECT_TRUE(status.ok()) << status.text();
}

}  // namespace
}  // namespace rankine
