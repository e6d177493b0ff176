#include "algorithms/schedule/stating_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "algorithms/schedule/everyone.h"

namespace rankine {
namespace {

// The blocks of each message of the one round, from rank 0, in the order stated.
std::vector<int> lengths(const Schedule& schedule) {
  std::vector<int> out;
  for_each_transfer(schedule, 0, [&out](const Transfer& t) {
    if (t.from.front() == 0) out.push_back(t.what.list.size());
  });
  return out;
}

// Rank 0 sends so many blocks to ranks 1, 2, ...
Schedule stated(std::vector<int> of_each) {
  const int p = static_cast<int>(of_each.size()) + 1;
  return {p, 16, 1, [of_each = std::move(of_each)](int, Send send) {
            Rank to = 0;
            for (const int n : of_each) send(0, ++to, blocks(0, n), copy);
          }};
}

// Three messages of 3, 3 and 2 on two ports take 5, and the total says 4.
TEST(InTime, WhatAPortNeedsIsTheLeastTimeOfAnyAssignment) {
  EXPECT_EQ(least_time({3, 3, 2}, 2), 5);
  EXPECT_EQ(least_time({3, 3, 2, 2, 2}, 2), 6);
  EXPECT_EQ(least_time({1, 1, 1, 1, 1}, 2), 3);
  EXPECT_EQ(least_time({5, 1, 1}, 3), 5);
  EXPECT_EQ(least_time({}, 2), 0);
}

TEST(InTime, WhatIsInTimeStaysAsStated) {
  EXPECT_EQ(lengths(in_time(stated({3, 2, 1}))), (std::vector<int>{3, 2, 1}));
  EXPECT_EQ(lengths(in_time(stated({2, 2, 2}))), (std::vector<int>{2, 2, 2}));
}

// 2, 2, 3 take 5 on two ports; the first order that takes 4 keeps the first of them.
TEST(InTime, WhatIsLateBecomesTheNearestOrderThatIsNot) {
  EXPECT_EQ(lengths(in_time(stated({2, 2, 3}))), (std::vector<int>{2, 3, 2}));
  EXPECT_EQ(lengths(in_time(stated({1, 2, 3}))), (std::vector<int>{1, 3, 2}));
  EXPECT_EQ(lengths(in_time(stated({1, 1, 2, 2}))), (std::vector<int>{1, 2, 2, 1}));
}

struct Message {
  Rank from, to;
  int blocks;
  bool operator==(const Message&) const = default;
};
using Messages = std::vector<Message>;

Messages in_time(const Messages& stated) {
  const Schedule schedule{6, 16, 1, [&stated](int, Send send) {
                            for (const auto& [from, to, n] : stated) {
                              send(from, to, blocks(0, n), copy);
                            }
                          }};
  Messages out;
  for_each_transfer(in_time(schedule), 0, [&out](const Transfer& t) {
    out.push_back({t.from.front(), t.to.front(), t.what.list.size()});
  });
  return out;
}

// Three messages of any length one after the other where nobody has more than two. The blocks do
// not show it, since the other message is longer than those together.
TEST(InTime, MessagesThatCostTheSameAreInTimeToo) {
  EXPECT_EQ(in_time(Messages{{0, 1, 1}, {4, 5, 8}, {2, 1, 4}, {2, 3, 1}}),
            (Messages{{0, 1, 1}, {4, 5, 8}, {2, 3, 1}, {2, 1, 4}}));
}

// As matchings 4 and 1, then 3 and 4, then 3: each order of those is late at some price. Not so if
// the 4 and 1, or the 3 and 4, may be apart.
TEST(InTime, WhereNoOrderOfMatchingsDoesOneOfTheirLengthsMay) {
  EXPECT_EQ(in_time(Messages{{0, 4, 4}, {4, 3, 1}, {0, 1, 3}, {2, 3, 4}, {4, 1, 3}}),
            (Messages{{0, 4, 4}, {2, 3, 4}, {4, 1, 3}, {4, 3, 1}, {0, 1, 3}}));
}

// Here the 1 of 2 and the 1 of 0 must be apart, which are of one matching: 2 sends 3 in all.
TEST(InTime, WhereNoOrderOfLengthsDoesOneByWhatSendersSendMay) {
  EXPECT_EQ(in_time(Messages{{2, 3, 2}, {3, 2, 2}, {2, 1, 1}, {1, 3, 3}, {0, 2, 1}, {3, 1, 1}}),
            (Messages{{1, 3, 3}, {2, 1, 1}, {2, 3, 2}, {3, 2, 2}, {0, 2, 1}, {3, 1, 1}}));
}

// On one port these take 8 if each costs one more than its blocks, in any order, where 7 are
// needed; on two they do so as stated, with 5 where 4 are needed, and that can be helped.
TEST(InTime, WhatMustBeLateOnceIsNotLateTwice) {
  EXPECT_EQ(in_time(Messages{{1, 0, 1}, {3, 4, 2}, {5, 1, 3}, {3, 0, 1}, {5, 0, 2}, {1, 4, 3}}),
            (Messages{{1, 4, 3}, {5, 0, 2}, {5, 1, 3}, {3, 0, 1}, {3, 4, 2}, {1, 0, 1}}));
}

// One port needs 6 if each costs one more than its blocks, but any order takes 7; and all else is
// in time as stated.
TEST(InTime, WhatCannotBeHelpedStaysAsStated) {
  const Messages stated = {{1, 5, 1}, {4, 3, 1}, {0, 3, 2}, {2, 5, 1},
                           {2, 1, 2}, {1, 0, 3}, {0, 5, 1}};
  EXPECT_EQ(in_time(stated), stated);
}

// Where everyone does the same, everyone still does, and readers may look at one.
TEST(InTime, EveryoneDoesTheSameAsBefore) {
  const Schedule part{5, 5, 1, [](int, Send send) {
                        send(0, 1, blocks(0, 2), copy);
                        send(0, 2, blocks(0, 2), copy);
                        send(0, 3, blocks(0, 3), copy);
                      }};
  const Schedule all = in_time(everyone(part, Moves::with_rank));
  ASSERT_NE(everyone_in(all), nullptr);
  EXPECT_EQ(lengths(all), (std::vector<int>{2, 3, 2}));
  EXPECT_EQ(lengths(everyone_in(all)->part()), (std::vector<int>{2, 3, 2}));
}

// A switch's transfer takes ports of many: its round stays as it is. Local work takes none.
TEST(InTime, SwitchesAreLeftAlone) {
  const Schedule with_switch{4, 4, 1, [](int, Send send) {
                               send(0, 1, blocks(0, 2), copy);
                               send(0, 2, blocks(0, 2), copy);
                               send(0, 3, blocks(0, 3), copy);
                               send(1, ranks_from(2, 2), block(0), copy);
                             }};
  EXPECT_EQ(lengths(in_time(with_switch)), (std::vector<int>{2, 2, 3}));
  const Schedule with_work{4, 4, 1, [](int, Send send) {
                             send(0, 0, blocks(0, 1), copy);
                             send(0, 1, blocks(0, 2), copy);
                             send(0, 2, blocks(0, 2), copy);
                             send(0, 3, blocks(0, 3), copy);
                           }};
  EXPECT_EQ(lengths(in_time(with_work)), (std::vector<int>{1, 2, 3, 2}));
}

}  // namespace
}  // namespace rankine
