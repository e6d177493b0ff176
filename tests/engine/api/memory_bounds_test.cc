// The memory of a communicator stays within bounds, however many calls it makes. That takes
// thousands of plans, which sanitizers of threads would be slow to make and learn nothing from.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/api/team.h"

namespace rankine {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// Thousands of calls of many sizes, collectives and algorithms, each planned once: what is kept
// must not grow with how many there were.
TEST(MemoryBounds, StaysBoundedOverCallsOfEverySize) {
  constexpr int kRanks = 8;
  auto team = Team::create({.ranks = kRanks});
  ASSERT_TRUE(team.ok()) << team.status().text();
  Communicator& communicator = (*team)->communicator();
  constexpr std::size_t kMost = 20'000;
  std::vector<std::size_t> after;
  for (std::size_t turn = 0; turn < 4; ++turn) {
    const Status status = (*team)->run([&](Member& me) {
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
  // Twice the largest need is what growing by doubling may leave.
  EXPECT_LE(scratch, kRanks * 2 * 2 * kMost * sizeof(float));
  EXPECT_LE(communicator.cached_plans(), 2048U);
  EXPECT_LT(communicator.shared_memory().plans, 72 * kMiB);
  // Two turns are more than is kept.
  EXPECT_LT(after[3], after[1] + after[1] / 2) << "still growing";
}

// Plans of many ranks are large: they are let go by their bytes, also by ranks that hold them.
TEST(MemoryBounds, LargePlansAreLetGo) {
  constexpr int kRanks = 64;
  auto team = Team::create({.ranks = kRanks});
  ASSERT_TRUE(team.ok()) << team.status().text();
  Communicator& communicator = (*team)->communicator();
  constexpr std::size_t kBound = 72 * kMiB;
  std::size_t most = 0, planned = 0;
  constexpr std::size_t kCounts = 30;
  const Status status = (*team)->run([&](Member& me) {
    std::vector<std::uint32_t> in(kCounts * kRanks), out(kCounts * kRanks);
    for (std::size_t count = 1; count <= kCounts; ++count) {
      // Several that differ, so that more is planned than is kept.
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
