// Messages: their order, their numbers, sub-rounds and credit.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "algorithms/ring.h"
#include "engine/compile/lower.h"
#include "engine/run/mailbox.h"
#include "engine/run/plan.h"
#include "tests/engine/run/random_call.h"

namespace rankine {
namespace {

Result<Plan> plan_of(const Schedule& schedule, std::size_t count, LowerOptions options = {}) {
  const Goal goal{Collective::all_reduce, schedule.ranks, schedule.blocks};
  const std::vector<std::size_t> counts = {count};
  return make_plan(schedule, goal, make_layout(goal, counts, 4, Borders::plain), Buffers::apart,
                   Transport::mailbox, options);
}

// "send 1:0 fold wait 1:0 ...": ops of a rank with peers and numbers.
std::string text_of(const Plan& plan, Rank r) {
  std::string text;
  for (const Op& op : plan.rank[static_cast<std::size_t>(r)].ops) {
    const std::string at = std::to_string(op.peer) + ":" + std::to_string(op.value);
    const char* flag = (op.flags & kByAddress) != 0 ? "*" : "";
    switch (op.code) {
      case OpCode::wait_message:
        text += "wait " + at + " ";
        break;
      case OpCode::wait_credit:
        text += "credit " + at + " ";
        break;
      case OpCode::wait_progress:
        text += "progress " + at + " ";
        break;
      case OpCode::count_ports:
        text += "count " + std::to_string(op.value) + " ";
        break;
      case OpCode::fold:
        text += op.operands > 0 ? "fold " : "publish " + std::to_string(op.value) + " ";
        break;
      case OpCode::send:
        text += "send" + std::string(flag) + " " + at + " ";
        break;
      case OpCode::release:
        text += "release" + std::string(flag) + " " + at + " ";
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

TEST(LowerMailbox, SmallMessagesTravelInSlotsAndOweNothing) {
  const auto plan = plan_of(ring_all_reduce(2), 8);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(text_of(*plan, 0),
            "send 1:0 wait 1:0 fold release 1:1 send 1:1 wait 1:1 fold release 1:2 end");
  ASSERT_EQ(plan->rank[0].traffic.size(), 1U);
  EXPECT_EQ(plan->rank[0].traffic[0].sent, 2U);
  EXPECT_EQ(plan->rank[0].traffic[0].received, 2U);
}

TEST(LowerMailbox, LargeMessagesTravelByAddressAndAreAwaitedAtTheEnd) {
  const auto plan = plan_of(ring_all_reduce(2), 800);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(text_of(*plan, 0),
            "send* 1:0 wait 1:0 fold release* 1:1 send* 1:1 wait 1:1 fold release* 1:2 "
            "credit 1:2 end");
}

TEST(LowerMailbox, TheBorderIsThePayload) {
  LowerOptions options;
  options.slot_payload = 64;
  for (const std::size_t count : {32U, 33U}) {  // of two blocks: 64 and 68 bytes
    const auto plan = plan_of(ring_all_reduce(2), count, options);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(text_of(*plan, 0).find('*') != std::string::npos, count == 33U);
  }
}

TEST(LowerMailbox, WhatWasSentByAddressIsNotOverwrittenBeforeItIsUsed) {
  // Rank 0 sends its block away, then gets another one for the same place.
  const Schedule there_and_back{
      2, 1, 3, [](int k, Send send) { send(k == 1 ? 0 : 1, k == 1 ? 1 : 0, block(0), copy); }};
  const auto plan = plan_of(there_and_back, 100);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(text_of(*plan, 0),
            "wait 1:0 fold release* 1:1 send* 1:0 credit 1:1 wait 1:1 fold release* 1:2 "
            "credit 1:1 end");
  // In slots there is nothing to wait for: the data left at once.
  const auto small = plan_of(there_and_back, 2);
  ASSERT_TRUE(small.ok());
  EXPECT_EQ(text_of(*small, 0).find("credit"), std::string::npos);
}

// More messages of a pair in a round than may be under way: sub-rounds, sends first in each.
TEST(LowerMailbox, RoundsThatAreTooFullAreCut) {
  const int blocks = 40;
  const Schedule scattered{2, blocks, 1, [](int, Send send) {
                             for (int b = 0; b < blocks; b += 2) {
                               send(0, 1, block(b), reduce);
                               send(1, 0, block(b), reduce);
                             }
                           }};
  for (const int capacity : {1, 3, 8}) {
    LowerOptions options;
    options.mailbox_capacity = capacity;
    const auto plan = plan_of(scattered, 40, options);
    ASSERT_TRUE(plan.ok());
    for (Rank r : {0, 1}) {
      int under_way = 0, sent = 0;
      for (const Op& op : plan->rank[static_cast<std::size_t>(r)].ops) {
        if (op.code == OpCode::send) {
          EXPECT_EQ(op.value, static_cast<std::uint32_t>(sent++));
          ++under_way;
        }
        if (op.code == OpCode::wait_message) under_way = 0;
        EXPECT_LE(under_way, capacity);
      }
      EXPECT_EQ(sent, blocks / 2);
    }
  }
}

TEST(LowerMailbox, AnOperationThatNeedsTooManyMessagesAtOnceIsRefused) {
  const auto greedy = [](int messages) {
    return Schedule{2, 1, 1, [messages](int, Send send) {
                      for (int i = 0; i < messages; ++i) send(0, 1, block(0), reduce);
                    }};
  };
  EXPECT_TRUE(plan_of(greedy(8), 4).ok());
  const auto refused = plan_of(greedy(9), 4);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().text(),
            "mailbox: rank 1 needs 9 messages of rank 0 at once; allowed are 8");
}

// Between two messages of a rank it waits for the release of the one that had its port, and until
// the receiver has used what came before ("begun": until it has begun the call).
TEST(LowerMailbox, WithAPortEachMessageWaitsForTheOneBefore) {
  LowerOptions options;
  options.ports = 1;
  const auto plan = plan_of(ring_all_reduce(2), 8, options);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(text_of(*plan, 0),
            "publish 1 progress 1:1 send 1:0 count 0 wait 1:0 count 1 fold release* 1:1 "
            "credit 1:1 progress 1:2 send 1:1 count 0 wait 1:1 count 1 fold release* 1:2 "
            "credit 1:2 end");
  EXPECT_EQ(plan->rank[0].scratch_bytes, 0U);
  EXPECT_EQ(plan->span, 4U);
}

// Where a rank hears from more ranks at once than it has ports, it copies what comes early.
TEST(LowerMailbox, ARankWithFewPortsTakesItsMessagesOneAfterTheOther) {
  const Schedule to_one{4, 1, 1, [](int, Send send) {
                          for (Rank r = 1; r < 4; ++r) send(r, 0, block(0), reduce);
                        }};
  for (const int ports : {1, 2, 3}) {
    LowerOptions options;
    options.ports = ports;
    const auto plan = plan_of(to_one, 4, options);
    ASSERT_TRUE(plan.ok());
    int held = 0, copied = 0;
    for (const Op& op : plan->rank[0].ops) {
      if (op.code == OpCode::wait_message) ++held;
      EXPECT_LE(held, ports);
      if (op.code == OpCode::release) --held;
      if (op.code == OpCode::fold && op.operands == 1) ++copied;
      if (op.code == OpCode::fold && op.operands > 1) {
        EXPECT_EQ(op.operands, 4);  // all at once, in the schedule's order
      }
    }
    EXPECT_EQ(copied, 3 - (ports == 2 ? 1 : ports)) << ports;
    EXPECT_EQ(plan->rank[0].scratch_bytes, static_cast<std::size_t>(copied) * 64);
  }
}

TEST(LowerMailbox, TheDefaultsFitTheMailbox) {
  EXPECT_EQ(static_cast<std::uint32_t>(LowerOptions{}.mailbox_capacity), kUnderWay);
  EXPECT_LE(2 * kUnderWay, kSlots);
}

}  // namespace
}  // namespace rankine
