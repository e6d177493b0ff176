// Plans are made once, shared by all ranks, and kept within bounds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/team.h"

namespace rankine {
namespace {

TEST(PlanCache, APlanIsMadeOnceForAllRanks) {
  auto team = Team::create({.ranks = 4});
  ASSERT_TRUE(team.ok()) << team.status().text();
  const Status status = (*team)->run([](Member& me) {
    std::vector<std::uint32_t> data(100);
    for (int i = 0; i < 10; ++i) {
      me.all_reduce(std::span(data)).throw_if_error();
      me.all_reduce(std::span(data), ReduceOp::max).throw_if_error();
      me.all_reduce(std::span(data).first(99)).throw_if_error();
      me.broadcast(std::span(data), 2).throw_if_error();
    }
  });
  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_EQ((*team)->communicator().cached_plans(), 4U);
}

// More different calls than are kept, some that recur, and ranks that keep different ones.
TEST(PlanCache, StaysWithinBoundsAndForgetsNothingThatMatters) {
  auto team = Team::create({.ranks = 2});
  ASSERT_TRUE(team.ok()) << team.status().text();
  Communicator& communicator = (*team)->communicator();
  std::size_t most = 0;
  const Status status = (*team)->run([&](Member& me) {
    std::vector<std::uint32_t> data(12'000);
    for (std::size_t count = 1; count <= 10'000; ++count) {
      for (const std::size_t n : {count, std::size_t{7}}) {
        for (std::size_t i = 0; i < n; ++i) data[i] = static_cast<std::uint32_t>(i + n);
        me.all_reduce(std::span(data).first(n)).throw_if_error();
        for (std::size_t i = 0; i < n; i += 97) {
          if (data[i] != 2 * static_cast<std::uint32_t>(i + n)) {
            throw std::runtime_error("count " + std::to_string(n));
          }
        }
      }
      if (me.rank() == 0) most = std::max(most, communicator.cached_plans());
    }
  });
  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_LE(most, 2048U);
  EXPECT_GT(most, 1000U);
  EXPECT_LT(communicator.memory_bytes(), std::size_t{64} << 20);
}

// What distinguishes two calls distinguishes their plans: every field, one after the other.
TEST(PlanCache, CallsThatDifferInOneFieldHavePlansOfTheirOwn) {
  constexpr int kRanks = 4;
  constexpr std::size_t kCount = 12;
  std::vector<std::size_t> counts = {3, 3, 3, 3}, others = {2, 4, 3, 3};
  const std::vector<int> dims = {2, 2}, skips = {2, 1}, levels = {2};
  const Call plain{.count = kCount, .options = {.algorithm = "ring"}};
  std::vector<Call> calls(1, plain);
  const auto but = [&](auto change) {
    calls.push_back(plain);
    change(calls.back());
  };
  but([](Call& c) { c.count = kCount + 1; });
  but([](Call& c) { c.type = DataType::i32; });
  but([](Call& c) { c.op = ReduceOp::max; });
  but([](Call& c) { c.options.algorithm = "chain_tree"; });
  but([](Call& c) { c.options.algorithm = "double_tree"; });
  but([](Call& c) { c.options = {.algorithm = "double_tree", .segments = 2}; });
  but([](Call& c) { c.options = {.algorithm = "two_level", .group = 1}; });
  but([](Call& c) { c.options = {.algorithm = "two_level", .group = 2}; });
  but([](Call& c) { c.options.transport = Transport::mailbox; });
  but([&](Call& c) { c.options = {.algorithm = "bucket", .dims = dims}; });
  but([&](Call& c) { c.options = {.algorithm = "circulant", .skips = skips}; });
  but([&](Call& c) { c.options = {.algorithm = "level_tree", .levels = levels}; });
  but([](Call& c) { c = {.collective = Collective::broadcast, .count = kCount, .root = 0}; });
  but([](Call& c) { c = {.collective = Collective::broadcast, .count = kCount, .root = 1}; });
  but([](Call& c) { c = {.collective = Collective::send_recv, .count = kCount, .peer = 1}; });
  but([](Call& c) { c = {.collective = Collective::send_recv, .count = kCount, .peer = 2}; });
  but([&](Call& c) { c = {.collective = Collective::all_gather, .counts = counts}; });
  but([&](Call& c) { c = {.collective = Collective::all_gather, .counts = others}; });
  std::erase_if(calls, [](const Call& c) {
    return !c.options.algorithm.empty() &&
           find_algorithm(c.collective, c.options.algorithm) == nullptr;
  });
  auto communicator = Communicator::create({.ranks = kRanks, .tuned = false}).value();
  const auto member = communicator->join(0).value();
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const auto plan = member->plan_of(calls[i]);
      ASSERT_TRUE(plan.ok()) << i << ": " << plan.status().text();
      EXPECT_EQ(communicator->cached_plans(), round == 0 ? i + 1 : calls.size()) << "call " << i;
    }
  }
  EXPECT_EQ(communicator->cached_plans(), calls.size());
  // In place is a field, too, and lists are compared by what is in them.
  float data[kCount];
  Call in_place = plain;
  in_place.in = in_place.out = data;
  ASSERT_TRUE(member->plan_of(in_place).ok());
  EXPECT_EQ(communicator->cached_plans(), calls.size() + 1);
  const std::vector<std::size_t> same = counts;
  ASSERT_TRUE(member->plan_of({.collective = Collective::all_gather, .counts = same}).ok());
  EXPECT_EQ(communicator->cached_plans(), calls.size() + 1);
}

// Ranks look plans up while others plan and forget: what is found is whole.
TEST(PlanCache, IsReadWhileItForgets) {
  constexpr int kRanks = 4;
  auto team = Team::create({.ranks = kRanks});
  ASSERT_TRUE(team.ok()) << team.status().text();
  const Status status = (*team)->run([](Member& me) {
    // Every rank asks for other shapes, in another order, without waiting for anybody.
    for (int i = 0; i < 6000; ++i) {
      const auto count = static_cast<std::size_t>(1 + (i * (2 * me.rank() + 1)) % 6000);
      const auto plan = me.plan_of({.collective = Collective::broadcast, .count = count});
      plan.status().throw_if_error();
    }
  });
  EXPECT_TRUE(status.ok()) << status.text();
}

}  // namespace
}  // namespace rankine
