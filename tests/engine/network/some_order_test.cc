#include "tests/engine/network/some_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "engine/network/port_model.h"
#include "tests/engine/network/satisfy.h"

namespace rankine {
namespace {

using Time = std::int64_t;
using Order = std::vector<std::size_t>;

constexpr int kRanks = 6;

Time time_of(const std::vector<Ends>& messages, const Order& order, const ByClock& clock) {
  const Schedule schedule{kRanks, kRanks, 1, [](int, Send) {}};
  PortModel<Time> model(schedule, {Collective::all_gather, kRanks, kRanks}, clock.ports,
                        Sync::rounds);
  model.begin_round(0);
  for (const std::size_t m : order) {
    model.take({messages[m].from, messages[m].to, block(0), block(0), copy}, clock.costs[m]);
  }
  model.end_round();
  return model.round_end();
}

bool in_time(const std::vector<Ends>& messages, const Order& order,
             const std::vector<ByClock>& clocks) {
  return std::all_of(clocks.begin(), clocks.end(), [&](const ByClock& clock) {
    return time_of(messages, order, clock) <= clock.limit;
  });
}

// visit(order) for all of them.
template <class Visit>
void for_each_order(std::size_t n, const Visit& visit) {
  Order order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  do visit(order);
  while (std::next_permutation(order.begin(), order.end()));
}

// On one port ranks 0 and 1 have 4 each to send. So 0 sends its 2 and 2 in either half of that
// time, and 1 its 2 in one half and its 1 and 1 in the other: that in which 3 and 4 cannot have
// either 2.
TEST(SomeOrder, AllPortsMayHaveTheTimeAndNoOrderDoes) {
  const std::vector<Ends> messages = {{0, 3}, {0, 4}, {1, 2}, {1, 3}, {1, 4}, {5, 2}};
  const std::vector<Time> costs = {2, 2, 2, 1, 1, 2};
  EXPECT_FALSE(SomeOrder::of(messages, {{1, costs, 4}}).has_value());
  const std::optional<Order> order = SomeOrder::of(messages, {{1, costs, 5}});
  ASSERT_TRUE(order.has_value());
  EXPECT_EQ(time_of(messages, *order, {1, costs, 5}), 5);
  EXPECT_TRUE(SomeOrder::of(messages, {{2, costs, 2}}).has_value());
  EXPECT_FALSE(SomeOrder::of(messages, {{2, costs, 1}}).has_value());
}

// Small rounds by four clocks, of which each can be met alone, or one cannot: the answer is what
// going through all orders says, and the order found does.
TEST(SomeOrder, SaysWhatGoingThroughAllOrdersDoes) {
  std::mt19937 random(1);
  const auto below = [&random](unsigned n) { return static_cast<int>(random() % n); };
  int found = 0, none = 0, apart = 0;  // apart: each clock has an order, but no order all clocks
  for (int round = 0; round < 400; ++round) {
    std::vector<Ends> messages;
    for (int n = 5 + below(2); n > 0; --n) messages.push_back({below(2), 2 + below(3)});
    std::vector<ByClock> clocks;
    while (clocks.size() < 4) {
      clocks.push_back({1 + below(3), {}, Time{1} << 20});
      for (std::size_t m = 0; m < messages.size(); ++m) clocks.back().costs.push_back(1 + below(9));
      Time least = clocks.back().limit;
      for_each_order(messages.size(), [&](const Order& order) {
        least = std::min(least, time_of(messages, order, clocks.back()));
      });
      clocks.back().limit = least;
    }
    const bool too_short = below(4) == 0;
    if (too_short) --clocks.back().limit;
    bool exists = false;
    for_each_order(messages.size(), [&](const Order& order) {
      exists = exists || in_time(messages, order, clocks);
    });
    const std::optional<Order> order = SomeOrder::of(messages, clocks);
    ASSERT_EQ(order.has_value(), exists) << "round " << round;
    if (order) {
      EXPECT_TRUE(in_time(messages, *order, clocks)) << "round " << round;
    }
    ++(exists ? found : too_short ? none : apart);
  }
  EXPECT_GT(found, 100);
  EXPECT_GT(none, 50);
  EXPECT_GT(apart, 10);
}

// So many pigeons, each in one of so many holes, and no two in one.
std::optional<std::vector<bool>> placed(int pigeons, int holes) {
  Satisfy clauses;
  std::vector<Clause> of_pigeon(static_cast<std::size_t>(pigeons));
  for (Clause& holds : of_pigeon) {
    for (int h = 0; h < holes; ++h) holds.push_back(clauses.variable());
  }
  for (std::size_t p = 0; p < of_pigeon.size(); ++p) {
    clauses.add(of_pigeon[p]);
    for (std::size_t q = 0; q < p; ++q) {
      for (std::size_t h = 0; h < static_cast<std::size_t>(holes); ++h) {
        clauses.add({-of_pigeon[p][h], -of_pigeon[q][h]});
      }
    }
  }
  return clauses.satisfied();
}

TEST(Satisfy, PigeonsFindAHoleEachWhereThereAreAsMany) {
  const auto held = placed(6, 6);
  ASSERT_TRUE(held.has_value());
  EXPECT_EQ(std::count(held->begin(), held->end(), true), 6);
  EXPECT_FALSE(placed(6, 5).has_value());
  EXPECT_FALSE(placed(1, 0).has_value());
  EXPECT_TRUE(placed(0, 0).has_value());
}

}  // namespace
}  // namespace rankine
