#include "engine/read/count.h"

#include <gtest/gtest.h>

#include "algorithms/direct.h"
#include "algorithms/ring.h"
#include "tests/engine/read/listed.h"

namespace rankine {
namespace {

TEST(Count, RingAllReduce) {
  const Counts counts = count(ring_all_reduce(5));
  EXPECT_EQ(counts.rounds, 8);
  ASSERT_EQ(counts.ranks.size(), 5u);
  const RankCounts each = {.sent = 8,
                           .received = 8,
                           .reduced = 4,
                           .messages_sent = 8,
                           .messages_received = 8,
                           .partners = 2,
                           .send_ports = 1,
                           .receive_ports = 1,
                           .local = 0};
  for (const RankCounts& rank : counts.ranks) EXPECT_EQ(rank, each);
  EXPECT_EQ(counts.busiest, each);
  EXPECT_EQ(counts.total.sent, 40);
}

TEST(Count, AMulticastCountsOnceForItsSenderAndOnceForEachReceiver) {
  const Counts counts = count(listed(4, 2, {{transfer(1, ranks_from(2, 2), blocks(0, 2), copy)}}));
  EXPECT_EQ(counts.ranks[1].sent, 2);
  EXPECT_EQ(counts.ranks[1].messages_sent, 1);
  EXPECT_EQ(counts.ranks[1].send_ports, 1);
  EXPECT_EQ(counts.ranks[1].partners, 2);
  EXPECT_EQ(counts.ranks[2].received, 2);
  EXPECT_EQ(counts.ranks[3].receive_ports, 1);
  EXPECT_EQ(counts.ranks[0], RankCounts{});
  EXPECT_EQ(counts.total.received, 4);
}

TEST(Count, AnAluCountsOnceForEachSenderAndOnceForItsReceiver) {
  const Counts counts = count(listed(4, 1, {{transfer(ranks_from(1, 3), 0, block(0), reduce)}}));
  for (const Rank r : {1, 2, 3}) {
    EXPECT_EQ(counts.ranks[static_cast<std::size_t>(r)].sent, 1);
    EXPECT_EQ(counts.ranks[static_cast<std::size_t>(r)].partners, 1);
  }
  EXPECT_EQ(counts.ranks[0].received, 1);
  EXPECT_EQ(counts.ranks[0].reduced, 1);
  EXPECT_EQ(counts.ranks[0].receive_ports, 1);
  EXPECT_EQ(counts.ranks[0].partners, 3);
}

TEST(Count, ManyToManyCountsOnceForEveryone) {
  const Counts counts =
      count(listed(3, 1, {{transfer(ranks_from(0, 3), ranks_from(0, 3), block(0), reduce)}}));
  for (const RankCounts& rank : counts.ranks) {
    EXPECT_EQ(rank.sent, 1);
    EXPECT_EQ(rank.received, 1);
    EXPECT_EQ(rank.partners, 2);
  }
}

TEST(Count, WhatStaysWithARankIsNoMessage) {
  const Counts counts = count(listed(
      2, 1, {{{0, 1, block(0), block(0, 1), copy}}, {{1, 1, block(0, 1), block(0), reduce}}}, 2));
  EXPECT_EQ(counts.rounds, 1) << "the last round has no message";
  EXPECT_EQ(counts.ranks[1].received, 1);
  EXPECT_EQ(counts.ranks[1].reduced, 1) << "it adds up all the same";
  EXPECT_EQ(counts.ranks[1].sent, 0);
  EXPECT_EQ(counts.ranks[1].local, 1);
  EXPECT_EQ(counts.ranks[1].partners, 1);
}

TEST(Count, PortsAreTheMostOfOneRound) {
  const auto pass = [](Rank from, Rank to) { return transfer(from, to, block(0), copy); };
  const Counts counts = count(listed(
      4, 1,
      {{pass(0, 1), pass(0, 2)}, {pass(0, 3)}, {}, {pass(1, 0), pass(2, 0), pass(3, 0)}, {}}));
  EXPECT_EQ(counts.rounds, 3) << "a round without a message takes no time";
  EXPECT_EQ(counts.ranks[0].send_ports, 2);
  EXPECT_EQ(counts.ranks[0].receive_ports, 3);
  EXPECT_EQ(counts.ranks[0].messages_sent, 3);
  EXPECT_EQ(counts.ranks[0].partners, 3);
}

TEST(Count, NothingIsNothing) {
  const Counts counts = count(nothing(3, 1));
  EXPECT_EQ(counts.rounds, 0);
  EXPECT_EQ(counts.busiest, RankCounts{});
}

}  // namespace
}  // namespace rankine
