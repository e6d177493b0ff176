// Messages between just two ranks: matched in order, short and long, waited for or not, in groups
// that no order can deadlock; and what may go wrong.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/api/network.h"
#include "engine/api/request.h"
#include "engine/api/team.h"
#include "tests/engine/api/ranks.h"

namespace rankine {
namespace {

using std::chrono_literals::operator""ms;

constexpr std::chrono::milliseconds kLong{60'000};

std::vector<std::int32_t> message(Rank from, Rank to, int number, std::size_t count) {
  std::vector<std::int32_t> data(count);
  std::iota(data.begin(), data.end(), from * 1'000'000 + to * 10'000 + number * 100);
  return data;
}

void expect_ok(const std::vector<Status>& results) {
  for (const Status& status : results) EXPECT_TRUE(status.ok()) << status.text();
}

TEST(PointToPoint, ArrivesInOrder) {
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, std::size_t{500}, std::size_t{100'000}}) {
    Ranks all({.ranks = 3, .timeout = kLong});
    expect_ok(all.run([&](Member& me) -> Status {
      // From 0 to 2 over 1; 2 hears nothing of what 0 and 1 do in between.
      for (int i = 0; i < 40; ++i) {
        std::vector<std::int32_t> data(count);
        if (me.rank() == 0) {
          data = message(0, 2, i, count);
          if (Status s = me.send(std::span<const std::int32_t>(data), 1); !s.ok()) return s;
        } else {
          if (Status s = me.recv(std::span(data), me.rank() - 1); !s.ok()) return s;
          EXPECT_EQ(data, message(0, 2, i, count)) << me.rank();
          if (me.rank() == 1) {
            if (Status s = me.send(std::span<const std::int32_t>(data), 2); !s.ok()) return s;
          }
        }
      }
      return {};
    }));
  }
}

// As the chapter has it: every rank sends to the right and receives from the left.
TEST(PointToPoint, RunsRoundARing) {
  for (const int ranks : {1, 2, 3, 8}) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{200'000}}) {
      Ranks all({.ranks = ranks, .timeout = kLong});
      expect_ok(all.run([&](Member& me) -> Status {
        const Rank right = (me.rank() + 1) % ranks, left = (me.rank() + ranks - 1) % ranks;
        for (int i = 0; i < 10; ++i) {
          const auto mine = message(me.rank(), right, i, count);
          std::vector<std::int32_t> theirs(count);
          auto sent = me.async().send(mine, right);
          auto received = me.async().recv(theirs, left);
          if (!sent.ok()) return sent.status();
          if (!received.ok()) return received.status();
          if (Status s = sent->wait(); !s.ok()) return s;
          if (Status s = received->wait(); !s.ok()) return s;
          EXPECT_EQ(theirs, message(left, me.rank(), i, count));
          std::vector<std::int32_t> again(count);
          if (Status s =
                  me.exchange(std::span<const std::int32_t>(mine), right, std::span(again), left);
              !s.ok()) {
            return s;
          }
          EXPECT_EQ(again, theirs);
        }
        return {};
      }));
    }
  }
}

// Everybody sends everybody something, in an order of its own, with collectives among it.
TEST(PointToPoint, GroupsCannotDeadlockByOrder) {
  constexpr int kRanks = 5;
  Ranks all({.ranks = kRanks, .timeout = kLong});
  expect_ok(all.run([&](Member& me) -> Status {
    std::mt19937 own(static_cast<unsigned>(me.rank())), same(3);
    for (int turn = 0; turn < 30; ++turn) {
      const std::size_t count = std::size_t{1} << same() % 17;
      std::vector<std::vector<std::int32_t>> sent, got(kRanks, std::vector<std::int32_t>(count));
      for (Rank r = 0; r < kRanks; ++r) sent.push_back(message(me.rank(), r, turn, count));
      std::vector<int> order(2 * kRanks + 1);
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), own);
      std::int32_t one = 1, sum = 0;
      const Status status = me.group([&] {
        for (const int what : order) {
          if (what == 2 * kRanks) {
            me.all_reduce(std::span<const std::int32_t>(&one, 1), std::span(&sum, 1))
                .throw_if_error();
          } else if (what < kRanks) {
            me.send(std::span<const std::int32_t>(sent[static_cast<std::size_t>(what)]), what)
                .throw_if_error();
          } else {
            me.group([&] {
                me.recv(std::span(got[static_cast<std::size_t>(what - kRanks)]), what - kRanks)
                    .throw_if_error();
              }).throw_if_error();
          }
        }
      });
      if (!status.ok()) return status;
      EXPECT_EQ(sum, kRanks);
      for (Rank r = 0; r < kRanks; ++r) {
        EXPECT_EQ(got[static_cast<std::size_t>(r)], message(r, me.rank(), turn, count));
      }
    }
    return {};
  }));
}

// A rank that has sent something long and is in a collective still hands it over.
TEST(PointToPoint, GoesOnWhileARankWaitsForSomethingElse) {
  Ranks all({.ranks = 2, .timeout = kLong});
  constexpr std::size_t kCount = 500'000;
  expect_ok(all.run([&](Member& me) -> Status {
    for (int i = 0; i < 5; ++i) {
      if (me.rank() == 0) {
        const auto data = message(0, 1, i, kCount);
        auto sent = me.prepared().send(data, 1);
        if (!sent.ok()) return sent.status();
        if (Status s = sent->start(); !s.ok()) return s;
        if (Status s = me.barrier(); !s.ok()) return s;
        if (Status s = sent->wait(); !s.ok()) return s;
      } else {
        std::vector<std::int32_t> data(kCount);
        if (Status s = me.recv(std::span(data), 0); !s.ok()) return s;
        EXPECT_EQ(data, message(0, 1, i, kCount));
        if (Status s = me.barrier(); !s.ok()) return s;
      }
    }
    return {};
  }));
}

TEST(PointToPoint, OneThreadPlaysBothEnds) {
  Ranks all({.ranks = 2, .timeout = kLong});
  const auto data = message(0, 1, 0, 1000);
  std::vector<std::int32_t> got(1000);
  auto sent = all.members()[0]->async().send(data, 1);
  auto received = all.members()[1]->async().recv(got, 0);
  while (!sent->test().value() || !received->test().value()) {
  }
  EXPECT_EQ(got, data);
}

TEST(PointToPoint, RefusesWhatCannotBe) {
  Ranks all({.ranks = 2, .timeout = kLong});
  Member& me = *all.members()[0];
  std::int32_t data[4] = {};
  const auto text = [](const Status& status) {
    EXPECT_EQ(status.code(), Code::invalid_argument);
    return status.text();
  };
  EXPECT_EQ(text(me.send(std::span<const std::int32_t>(data), 2)), "to is 2; allowed are 0 to 1");
  EXPECT_EQ(text(me.recv(std::span<std::int32_t>(data), -1)), "from is -1; allowed are 0 to 1");
  EXPECT_NE(text(me.submit(Message{nullptr, 4, DataType::i32, 1})).find("null"), std::string::npos);
  EXPECT_EQ(
      text(me.exchange(std::span<const std::int32_t>(data), 1, std::span<std::int32_t>(data), 9)),
      "from is 9; allowed are 0 to 1");
  EXPECT_NE(
      text(me.send(std::span<const std::int32_t>(data), 1, {.algorithm = "ring"})).find("ring"),
      std::string::npos);
  EXPECT_TRUE(all.communicator().health().ok());
}

TEST(PointToPoint, EndsTheCommunicatorWhereItFails) {
  const auto fails = [](const std::function<Status(Member&)>& f) {
    Ranks all({.ranks = 3, .timeout = 200ms});
    const auto results = all.run(f);
    EXPECT_FALSE(all.communicator().health().ok());
    return all.communicator().health();
  };
  std::int32_t data[3][8] = {};
  const Status mismatch = fails([&](Member& me) -> Status {
    auto* mine = data[me.rank()];
    if (me.rank() == 0) return me.send(std::span<const std::int32_t>(mine, 8), 1);
    if (me.rank() == 1) return me.recv(std::span(mine, 7), 0);
    return {};
  });
  EXPECT_EQ(mismatch.code(), Code::mismatch) << mismatch.text();
  EXPECT_NE(mismatch.text().find("among ranks 0, 1: "), std::string::npos) << mismatch.text();
  const Status timeout = fails([&](Member& me) -> Status {
    if (me.rank() == 1) return me.recv(std::span<std::int32_t>(data[1]), 0);
    return {};
  });
  EXPECT_EQ(timeout.code(), Code::timeout) << timeout.text();
}

TEST(PointToPoint, NobodyWaitsForARankThatHasLeft) {
  // Before and after the other end was used.
  for (const bool met : {false, true}) {
    Ranks all({.ranks = 2, .timeout = kLong});
    std::int32_t one = 1, got = 0;
    if (met) {
      auto sent = all.members()[0]->async().send(std::span(&one, 1), 1);
      EXPECT_TRUE(all.members()[1]->recv(std::span(&got, 1), 0).ok());
      EXPECT_TRUE(sent->wait().ok());
    }
    all.drop(0);
    const Status status = all.members()[1]->recv(std::span(&got, 1), 0);
    EXPECT_EQ(status.code(), Code::rank_lost) << status.text();
  }
  auto team = Team::create({.ranks = 2, .timeout = kLong}).value();
  for (const bool met : {false, true}) {
    std::int32_t one = 1, got = 0;
    EXPECT_TRUE(team->run([&](Member& me) {
                      if (me.rank() == 0)
                        me.send(std::span<const std::int32_t>(&one, 1), 1).throw_if_error();
                      if (me.rank() == 1) me.recv(std::span(&got, 1), 0).throw_if_error();
                    })
                    .ok());
    EXPECT_EQ(got, 1) << met;
  }
  std::int32_t got = 0;
  const Status status = team->run([&](Member& me) {
    if (me.rank() == 1) {
      EXPECT_EQ(me.recv(std::span(&got, 1), 0).code(), Code::rank_lost);
    }
  });
  EXPECT_EQ(status.code(), Code::rank_lost);
}

// What was on its way when the sender went arrives, though the receiver comes only then.
TEST(PointToPoint, AMessageOutlivesItsSender) {
  Ranks all({.ranks = 2, .timeout = kLong});
  const auto data = message(0, 1, 0, 10);
  std::vector<std::int32_t> got(10);
  EXPECT_TRUE(all.members()[0]->send(std::span<const std::int32_t>(data), 1).ok());
  all.drop(0);
  EXPECT_TRUE(all.members()[1]->recv(std::span(got), 0).ok());
  EXPECT_EQ(got, data);
  EXPECT_EQ(all.members()[1]->recv(std::span(got), 0).code(), Code::rank_lost);
}

// The first message to a rank leaves the deadline of a call that is under way as it is.
TEST(PointToPoint, LeavesTheDeadlinesOfOtherCalls) {
  Ranks all({.ranks = 2, .timeout = kLong});
  Member& me = *all.members()[0];
  std::int32_t one = 1, sum = 0;
  auto late = me.async().all_reduce(std::span<const std::int32_t>(&one, 1), std::span(&sum, 1),
                                    ReduceOp::sum, {.timeout = 30ms});
  EXPECT_TRUE(me.send(std::span<const std::int32_t>(&one, 1), 1).ok());
  const Status status = late->wait();
  EXPECT_EQ(status.code(), Code::timeout);
  EXPECT_NE(status.text().find("no answer within 30 ms"), std::string::npos) << status.text();
}

// Requests keep what they need: a pair's may be the last that is left of the communicator.
TEST(PointToPoint, RequestsOutliveEverybody) {
  std::int32_t one = 1;
  Request last;
  {
    Ranks all({.ranks = 2, .timeout = kLong});
    auto prepared = all.members()[0]->prepared().send(std::span<const std::int32_t>(&one, 1), 1);
    ASSERT_TRUE(prepared.ok());
    last = std::move(*prepared);
  }
  EXPECT_EQ(last.start().code(), Code::invalid_argument);
}

TEST(PointToPoint, AGroupOfNothingToCallIsRefused) {
  Ranks one({.ranks = 1});
  Member& me = *one.members()[0];
  EXPECT_EQ(me.group({}).text(), "group: calls is empty; it must be something to call");
  EXPECT_TRUE(me.group([&] { EXPECT_EQ(me.group({}).code(), Code::invalid_argument); }).ok());
  EXPECT_TRUE(me.barrier().ok());
}

TEST(PointToPoint, AGroupThatThrowsLetsGo) {
  Ranks all({.ranks = 2, .timeout = kLong});
  std::int32_t got = 0;
  EXPECT_THROW(static_cast<void>(all.members()[0]->group([&] {
                 all.members()[0]->recv(std::span(&got, 1), 1).throw_if_error();
                 throw std::runtime_error("no more");
               })),
               std::runtime_error);
  EXPECT_NE(all.communicator().health().text().find("let go of its request"), std::string::npos)
      << all.communicator().health().text();
}

// On a network a message takes what the model says, whatever else is under way, and as long every
// time.
TEST(PointToPoint, TakesItsTimeOnANetwork) {
  constexpr std::size_t kCount = 1'000'000;
  for (const std::size_t count : {std::size_t{1}, kCount}) {
    Ranks all({.ranks = 4, .timeout = kLong, .network = find_call_network("scale_out").value()});
    std::vector<double> ends(4);
    expect_ok(all.run([&](Member& me) -> Status {
      const Rank right = (me.rank() + 1) % 4, left = (me.rank() + 3) % 4;
      const auto mine = message(me.rank(), right, 0, count);
      std::vector<std::int32_t> theirs(count);
      for (int i = 1; i <= 3; ++i) {
        if (Status s =
                me.exchange(std::span<const std::int32_t>(mine), right, std::span(theirs), left);
            !s.ok()) {
          return s;
        }
        if (i == 1) ends[static_cast<std::size_t>(me.rank())] = me.model_time();
        EXPECT_DOUBLE_EQ(me.model_time(), i * ends[static_cast<std::size_t>(me.rank())]);
      }
      EXPECT_EQ(theirs, message(left, me.rank(), 0, count));
      return {};
    }));
    EXPECT_GT(ends[0], 0);
    for (const double end : ends) EXPECT_DOUBLE_EQ(end, ends[0]);
  }
}

}  // namespace
}  // namespace rankine
