// Idle ranks use no processor time, between runs and during long waits for another rank, in every
// wait mode. The test measures the processor time of this process, which does not depend on the
// machine's load. The time until all ranks sleep does depend on the load, so the test polls until
// it has seen an idle period. Ranks that never sleep fail the test by its time limit. The memory
// bounds of a communicator are tested too.

#include <sys/resource.h>

#include "engine/api/team.h"
#include "numa/topology.h"
#include "tests/testing.h"

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
  auto team = Team::create({.ranks = 8, .wait = WaitPolicy{.mode = GetParam()}}).value();
  const auto reduce = [](Member& me) {
    std::vector<float> data(100, 1.0F);
    me.all_reduce(std::span(data)).throw_if_error();
  };
  ASSERT_TRUE(team->run(reduce).ok());
  wait_until_idle();
  EXPECT_TRUE(team->run(reduce).ok());
}

TEST_P(Idle, RanksThatWaitForOneSleep) {
  for (const Transport transport : {Transport::mailbox, Transport::direct}) {
    auto team = Team::create({.ranks = 8, .wait = WaitPolicy{.mode = GetParam()}}).value();
    const Status status = team->run([&](Member& me) {
      std::vector<float> data(100, 1.0F);
      me.all_reduce(std::span(data), ReduceOp::max, {.transport = transport}).throw_if_error();
      if (me.rank() == 3) wait_until_idle();
      me.all_reduce(std::span(data), ReduceOp::max, {.transport = transport}).throw_if_error();
    });
    EXPECT_TRUE(status.ok()) << name_of(transport) << ": " << status.text();
  }
}

// A progress thread sleeps between calls, and naps while started calls wait for a rank.
TEST_P(Idle, TheHelperSleeps) {
  auto team = Team::create({.ranks = 2,
                            .wait = WaitPolicy{.mode = GetParam()},
                            .progress_core = Topology::detect().cpus().front().os_index})
                  .value();
  std::latch slept(1), started(1), napped(1);
  const Status status = team->run([&](Member& me) {
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

// The memory of a communicator stays bounded for any number of calls. The test needs thousands of
// plans; thread sanitizers would be slow and find nothing in it.

constexpr std::size_t kMiB = std::size_t{1} << 20;

// Thousands of calls of many sizes, collectives and algorithms, each planned once. The kept memory
// must not grow with their number.
TEST(MemoryBounds, StaysBoundedOverCallsOfEverySize) {
  constexpr int kRanks = 8;
  auto team = Team::create({.ranks = kRanks}).value();
  Communicator& communicator = team->communicator();
  constexpr std::size_t kMost = 20'000;
  std::vector<std::size_t> after;
  for (std::size_t turn = 0; turn < 4; ++turn) {
    const Status status = team->run([&](Member& me) {
      std::vector<float> in(kMost), out(kMost);
      for (std::size_t i = 0; i < 400; ++i) {
        const std::size_t count = 1 + (i * 48 + turn * 16) % (kMost / kRanks);
        const std::span<const float> whole(in.data(), count * kRanks);
        me.all_reduce(whole, std::span(out).first(count * kRanks)).throw_if_error();
        me.all_gather(std::span<const float>(in.data(), count),
                      std::span(out).first(count * kRanks))
            .throw_if_error();
        me.all_reduce(whole, std::span(out).first(count * kRanks), ReduceOp::sum,
                      {.algorithm = "swing_latency"})
            .throw_if_error();
        me.all_to_all(whole, std::span(out).first(count * kRanks)).throw_if_error();
      }
    });
    ASSERT_TRUE(status.ok()) << status.text();
    after.push_back(communicator.memory_bytes());
  }
  std::size_t scratch = 0;
  for (Rank r = 0; r < kRanks; ++r) scratch += communicator.memory_of(r).scratch.bytes;
  EXPECT_GT(scratch, 0U);
  // Growth by doubling may leave twice the largest need.
  EXPECT_LE(scratch, kRanks * 2 * 2 * kMost * sizeof(float));
  EXPECT_LE(communicator.cached_plans(), 2048U);
  EXPECT_LT(communicator.shared_memory().plans, 72 * kMiB);
  // Two turns make more plans than the cache keeps.
  EXPECT_LT(after[3], after[1] + after[1] / 2) << "still growing";
}

// Plans for many ranks are large: the cache drops them by their bytes, also the plans that ranks
// hold.
TEST(MemoryBounds, LargePlansAreLetGo) {
  constexpr int kRanks = 64;
  auto team = Team::create({.ranks = kRanks}).value();
  Communicator& communicator = team->communicator();
  constexpr std::size_t kBound = 72 * kMiB;
  std::size_t most = 0, planned = 0;
  constexpr std::size_t kCounts = 30;
  const Status status = team->run([&](Member& me) {
    std::vector<std::uint32_t> in(kCounts * kRanks), out(kCounts * kRanks);
    for (std::size_t count = 1; count <= kCounts; ++count) {
      // Several types, so the calls need more plans than the cache keeps.
      for (const DataType type : {DataType::u32, DataType::i32, DataType::f32}) {
        me.call({.collective = Collective::all_to_all,
                 .in = in.data(),
                 .out = out.data(),
                 .count = count,
                 .type = type,
                 .options = {.algorithm = "ring"}})
            .throw_if_error();
        if (me.rank() == 0) {
          most = std::max(most, communicator.shared_memory().plans);
          if (planned == 0) planned = communicator.shared_memory().plans;
        }
      }
    }
  });
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_GT(3 * kCounts * planned, 2 * kBound) << "else keeping all of them would be small enough";
  EXPECT_LT(most, kBound);
}

}  // namespace
}  // namespace rankine
