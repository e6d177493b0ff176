// Ranks that have nothing to do use no processor time: between runs, and while they wait long for
// another rank, whichever way they wait. Measured in processor time of this process, which the load
// of the machine does not change; how soon all are asleep it does change, so a test looks until it
// has seen them idle. Ranks that never sleep are never seen so, and end it by its time limit.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <latch>
#include <thread>
#include <vector>

#include "engine/api/team.h"
#include "numa/topology.h"

namespace rankine {
namespace {

using std::chrono_literals::operator""ms;

constexpr auto kIdle = 300ms;

std::chrono::microseconds processor_time() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto total = [](const timeval& t) {
    return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
  };
  return total(usage.ru_utime) + total(usage.ru_stime);
}

void wait_until_idle() {
  std::chrono::microseconds used;
  do {
    const auto before = processor_time();
    std::this_thread::sleep_for(kIdle);
    used = processor_time() - before;
  } while (used > kIdle / 10);
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
  wait_until_idle();
  EXPECT_TRUE((*team)->run(reduce).ok());
}

TEST_P(Idle, RanksThatWaitForOneSleep) {
  for (const Transport transport : {Transport::mailbox, Transport::direct}) {
    auto team = Team::create({.ranks = 8, .wait = WaitPolicy{.mode = GetParam()}});
    ASSERT_TRUE(team.ok()) << team.status().text();
    const Status status = (*team)->run([&](Member& me) {
      std::vector<float> data(100, 1.0F);
      me.all_reduce(std::span(data), ReduceOp::max, {.transport = transport}).throw_if_error();
      if (me.rank() == 3) wait_until_idle();
      me.all_reduce(std::span(data), ReduceOp::max, {.transport = transport}).throw_if_error();
    });
    EXPECT_TRUE(status.ok()) << name_of(transport) << ": " << status.text();
  }
}

// A thread that makes progress has nothing to do between calls; and naps while those that are
// started wait for a rank.
TEST_P(Idle, TheHelperSleeps) {
  auto team = Team::create({.ranks = 2,
                            .wait = WaitPolicy{.mode = GetParam()},
                            .progress_core = Topology::detect().cpus().front().os_index});
  ASSERT_TRUE(team.ok()) << team.status().text();
  std::latch slept(1), started(1), napped(1);
  const Status status = (*team)->run([&](Member& me) {
    std::vector<float> data(100, 1.0F);
    const auto start = [&] { return me.async().all_reduce(std::span(data)).value(); };
    start().wait().throw_if_error();
    if (me.rank() == 0) {
      wait_until_idle();
      slept.count_down();
      started.wait();
      wait_until_idle();
      napped.count_down();
      start().wait().throw_if_error();
      return;
    }
    slept.wait();
    Request unanswered = start();
    started.count_down();
    napped.wait();
    unanswered.wait().throw_if_error();
  });
  EXPECT_TRUE(status.ok()) << status.text();
}

INSTANTIATE_TEST_SUITE_P(Modes, Idle,
                         testing::Values(WaitPolicy::Mode::spin, WaitPolicy::Mode::yield,
                                         WaitPolicy::Mode::park));

}  // namespace
}  // namespace rankine
