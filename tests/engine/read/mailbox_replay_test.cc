#include "engine/read/contributions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>

namespace rankine {
namespace {

using Messages = std::vector<std::pair<Rank, Rank>>;

bool runs_through(int ranks, int capacity, MessageOrder order, const Messages& messages) {
  MailboxReplay replay(ranks, capacity, order);
  for (const auto& [from, to] : messages) replay.add(from, to);
  return !replay.end_round();
}

Messages exchange(int times) {
  Messages messages;
  for (int i = 0; i < times; ++i) {
    messages.push_back({0, 1});
    messages.push_back({1, 0});
  }
  return messages;
}

TEST(MailboxReplay, SendsFirstNeedsRoomForARound) {
  EXPECT_TRUE(runs_through(2, 8, MessageOrder::sends_first, exchange(8)));
  EXPECT_FALSE(runs_through(2, 8, MessageOrder::sends_first, exchange(9)));
  EXPECT_TRUE(runs_through(2, 8, MessageOrder::sub_rounds, exchange(9)));
}

TEST(MailboxReplay, ReceivesFirstRunsWhereMessagesGoOneWay) {
  EXPECT_TRUE(runs_through(3, 1, MessageOrder::receives_first, {{0, 1}, {0, 1}, {1, 2}, {0, 2}}));
  EXPECT_FALSE(runs_through(3, 1, MessageOrder::receives_first, {{0, 1}, {1, 2}, {2, 0}}));
}

TEST(MailboxReplay, NamesTheCircleAndNotWhoeverWaitsForIt) {
  MailboxReplay replay(4, 1, MessageOrder::sends_first);
  for (const auto& [from, to] : Messages{{0, 1}, {0, 1}, {1, 2}, {1, 2}, {2, 1}, {2, 1}}) {
    replay.add(from, to);
  }
  const auto circle = replay.end_round();
  ASSERT_TRUE(circle);
  EXPECT_EQ(circle->rank, 1);
  EXPECT_EQ(circle->text,
            "rank 1 waits to send to 2 (1 messages unread), rank 2 waits to send to 1 (1 messages "
            "unread)");
}

TEST(MailboxReplay, RoundsFollowOneAnother) {
  MailboxReplay replay(3, 1, MessageOrder::sub_rounds);
  EXPECT_FALSE(replay.end_round()) << "an empty round";
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < round; ++i) {
      for (Rank r = 0; r < 3; ++r) replay.add(r, (r + 1) % 3);
    }
    EXPECT_FALSE(replay.end_round());
  }
}

// The two orders that no round can stop, whatever its messages, and a capacity that always does.
TEST(MailboxReplay, RandomRounds) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 2000; ++trial) {
    const int ranks = 2 + static_cast<int>(random() % 6);
    const int capacity = 1 + static_cast<int>(random() % 3);
    Messages messages;
    std::map<std::pair<Rank, Rank>, int> of_pair;
    int most = 0;
    for (int i = 0; i < 30; ++i) {
      const Rank from = static_cast<Rank>(random() % static_cast<unsigned>(ranks));
      const Rank to = static_cast<Rank>(random() % static_cast<unsigned>(ranks));
      if (from == to) continue;
      messages.push_back({from, to});
      most = std::max(most, ++of_pair[{from, to}]);
    }
    EXPECT_TRUE(runs_through(ranks, capacity, MessageOrder::sub_rounds, messages));
    EXPECT_TRUE(runs_through(ranks, capacity, MessageOrder::statement, messages));
    EXPECT_TRUE(runs_through(ranks, std::max(1, most), MessageOrder::sends_first, messages));
  }
}

}  // namespace
}  // namespace rankine
