// Plans are made once, shared by all ranks, and kept within bounds.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

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

TEST(PlanCache, StaysWithinBoundsAndForgetsNothingThatMatters) {
  auto team = Team::create({.ranks = 2});
  ASSERT_TRUE(team.ok()) << team.status().text();
  Communicator& communicator = (*team)->communicator();
  std::size_t most = 0;
  const Status status = (*team)->run([&](Member& me) {
    std::vector<std::uint32_t> data(4000);
    // More different calls than are kept, one that recurs, and ranks that keep different ones.
    for (std::size_t count = 1; count <= 2500; ++count) {
      for (const std::size_t n : {count, std::size_t{7}}) {
        for (std::size_t i = 0; i < n; ++i) data[i] = static_cast<std::uint32_t>(i + n);
        me.all_reduce(std::span(data).first(n)).throw_if_error();
        for (std::size_t i = 0; i < n; ++i) {
          if (data[i] != 2 * static_cast<std::uint32_t>(i + n)) {
            throw std::runtime_error("count " + std::to_string(n));
          }
        }
      }
      if (me.rank() == 0) most = std::max(most, communicator.cached_plans());
    }
  });
  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_LE(most, 1024U);
  EXPECT_GT(most, 500U);
  EXPECT_LT(communicator.memory_bytes(), std::size_t{16} << 20);
}

}  // namespace
}  // namespace rankine
