// What planning takes: every default among as many ranks as there may be, and the estimate that
// planning goes by. Bytes are counted, by operators new of this test's own.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/halving_doubling.h"
#include "engine/api/communicator.h"
#include "engine/api/tuning/choose.h"
#include "engine/compile/compile.h"
#include "engine/compile/versions.h"
#include "engine/read/verify.h"
#include "tests/engine/run/counted_memory.h"

namespace rankine {
namespace {

// As a communicator makes it for calls that leave the choice to it.
CompileRequest default_request(Collective collective, int ranks, std::size_t count,
                               Buffers buffers) {
  CompileRequest request;
  const auto blocks = static_cast<std::size_t>(natural_blocks(collective, ranks));
  request.counts.assign(blocks, count);
  const std::size_t senders =
      collective == Collective::all_to_all ? static_cast<std::size_t>(ranks) : 1;
  const std::size_t bytes = blocks / senders * count * 4;
  request.algorithm = &default_algorithm(collective, ranks, bytes, buffers);
  request.buffers = buffers;
  request.params.ranks = ranks;
  if (collective == Collective::send_recv) request.params.peer = ranks - 1;
  request.params.segments = choose_segments(*request.algorithm, ranks, bytes);
  if (collective == Collective::barrier) {
    request.type = DataType::u32;
    request.op = ReduceOp::bor;
  }
  request.slot_payload = 48;
  request.board_bytes = board_bytes(ranks);
  request.mailbox_capacity = 4;
  return request;
}

class Defaults : public testing::TestWithParam<Collective> {};

TEST_P(Defaults, PlanInLittleMemoryAmongAsManyRanksAsThereMayBe) {
  constexpr int kRanks = Communicator::kMaxRanks;
  constexpr std::size_t kMost = std::size_t{256} << 20;
  const int blocks = natural_blocks(GetParam(), kRanks);
  const int parts = GetParam() == Collective::all_to_all ? blocks / kRanks : blocks;  // of a vector
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{1} << 20, std::size_t{64} << 20}) {
    const std::size_t count = std::max<std::size_t>(1, bytes / 4 / static_cast<std::size_t>(parts));
    for (const Buffers buffers : {Buffers::apart, Buffers::in_place}) {
      const CompileRequest request = default_request(GetParam(), kRanks, count, buffers);
      SCOPED_TRACE(std::string(request.algorithm->name) + ", " + std::to_string(count));
      const std::size_t before = CountedMemory::begin();
      const auto compiled = compile(request);
      ASSERT_TRUE(compiled.ok()) << compiled.status().text();
      if (!kCountsMemory) continue;
      EXPECT_LT(CountedMemory::most.load() - before, kMost);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Collectives, Defaults,
                         testing::ValuesIn(all_collectives().begin(), all_collectives().end()),
                         [](const auto& of) { return std::string(name_of(of.param)); });

TEST(PlanMemory, IsNeverMoreThanThought) {
  if (!kCountsMemory) GTEST_SKIP() << "a sanitizer's operators new count nothing";
  for (const Algorithm& line : catalogue()) {
    for (const int ranks : {2, 7, 16, 32}) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{5000}, std::size_t{1} << 18}) {
        CompileRequest request = default_request(line.collective, ranks, count, Buffers::in_place);
        request.algorithm = &line;
        request.params.segments = 5;
        request.params = line.only_taken(request.params);
        if (line.refusal(request.params)) continue;
        SCOPED_TRACE(std::string(name_of(line.collective)) + " " + std::string(line.name) + ", " +
                     std::to_string(ranks) + " ranks, " + std::to_string(count));
        // The least limit under which it is planned is more than it takes.
        std::size_t enough = std::size_t{64} << 20, too_little = 0;
        while (enough - too_little > 4096) {
          request.limits.bytes = (enough + too_little) / 2;
          (compile(request).ok() ? enough : too_little) = request.limits.bytes;
        }
        request.limits.bytes = enough;
        const std::size_t before = CountedMemory::begin();
        ASSERT_TRUE(compile(request).ok());
        EXPECT_LE(CountedMemory::most.load() - before, enough);
      }
    }
  }
}

}  // namespace

// A proof takes as much memory as its messages and what they leave behind, not ranks times ranks:
// so several large ones have room side by side. Memory is counted where it is asked for.

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// A round of radix 4 adds up what 4 ranks have, whose sums on the way are no intervals of ranks;
// and what a rank hands on at the end came to it in many rounds.
TEST(VerifyMemory, HalvingAndDoublingOfAnyRadix) {
  constexpr int kRanks = 1 << 14;
  for (const int radix : {2, 3, 4}) {
    const Schedule schedule = halving_doubling_all_reduce(kRanks, radix);
    const Goal goal{
        .collective = Collective::all_reduce, .ranks = kRanks, .blocks = schedule.blocks};
    const std::size_t before = CountedMemory::begin();
    const auto violation = verify(schedule, goal);
    EXPECT_FALSE(violation) << violation->text;
    if (!kCountsMemory) continue;
    EXPECT_LE(CountedMemory::most - before, 32 * kMiB) << "radix " << radix;
  }
}

}  // namespace
}  // namespace rankine
