// Ranks that have nothing to do use no processor time: between runs, and while they wait long for
// another rank, whichever way they wait. Measured in processor time of this process, which the load
// of the machine does not change.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "engine/api/team.h"

namespace rankine {
namespace {

using std::chrono_literals::operator""ms;

constexpr auto kIdle = 600ms;

std::chrono::microseconds processor_time() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto total = [](const timeval& t) {
    return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
  };
  return total(usage.ru_utime) + total(usage.ru_stime);
}

class Idle : public testing::TestWithParam<WaitPolicy::Mode> {};

TEST_P(Idle, BetweenRunsNobodyWorks) {
  auto team = Team::create({.ranks = 8, .wait = WaitPolicy{.mode = GetParam()}});
  ASSERT_TRUE(team.ok()) << team.status().text();
  const auto reduce = [](Member& me) {
    std::vector<float> data(100, 1.0F);
    me.all_reduce(std::span(data)).throw_if_error();
  };
  ASSERT_TRUE((*team)->run(reduce).ok());
  const auto before = processor_time();
  std::this_thread::sleep_for(kIdle);
  EXPECT_LT(processor_time() - before, kIdle / 10);
  EXPECT_TRUE((*team)->run(reduce).ok());
}

TEST_P(Idle, RanksThatWaitForOneSleep) {
  for (const Transport transport : {Transport::mailbox, Transport::direct}) {
    auto team = Team::create({.ranks = 8, .wait = WaitPolicy{.mode = GetParam()}});
    ASSERT_TRUE(team.ok()) << team.status().text();
    std::chrono::microseconds used{0};
    const Status status = (*team)->run([&](Member& me) {
      std::vector<float> data(100, 1.0F);
      me.all_reduce(std::span(data), ReduceOp::max, {.transport = transport}).throw_if_error();
      if (me.rank() == 3) {
        std::this_thread::sleep_for(kIdle / 4);  // the others are asleep by then
        const auto before = processor_time();
        std::this_thread::sleep_for(kIdle);
        used = processor_time() - before;
      }
      me.all_reduce(std::span(data), ReduceOp::max, {.transport = transport}).throw_if_error();
    });
    EXPECT_TRUE(status.ok()) << status.text();
    // Seven ranks that spin would use as much as there are cores; that sleep, next to nothing.
    EXPECT_LT(used, kIdle / 4) << name_of(transport);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, Idle,
                         testing::Values(WaitPolicy::Mode::spin, WaitPolicy::Mode::yield,
                                         WaitPolicy::Mode::park));

}  // namespace
}  // namespace rankine
