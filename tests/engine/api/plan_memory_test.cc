// The memory of planning: every default algorithm with the largest number of ranks, the planner's
// estimate, and the memory of verify(). This test's operators new count the bytes.

#include "algorithms/catalogue.h"
#include "algorithms/halving_doubling.h"
#include "engine/api/communicator.h"
#include "engine/api/tuning/choose.h"
#include "engine/compile/compile.h"
#include "engine/compile/ssa.h"
#include "engine/read/verify.h"
#include "tests/engine/run/counted_memory.h"
#include "tests/testing.h"

namespace rankine {
namespace {

// The request that a communicator makes for a call without an algorithm.
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
  const int parts = GetParam() == Collective::all_to_all ? blocks / kRanks : blocks;  // per vector
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{1} << 20, std::size_t{64} << 20}) {
    const std::size_t count = std::max<std::size_t>(1, bytes / 4 / static_cast<std::size_t>(parts));
    for (const Buffers buffers : {Buffers::apart, Buffers::in_place}) {
      const CompileRequest request = default_request(GetParam(), kRanks, count, buffers);
      SCOPED_TRACE(std::string(request.algorithm->name) + ", " + std::to_string(count));
      const std::size_t before = CountedMemory::begin();
      const auto compiled = compile(request).value();
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
  for (const Algorithm& entry : catalogue()) {
    for (const int ranks : {2, 7, 16, 32}) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{5000}, std::size_t{1} << 18}) {
        CompileRequest request = default_request(entry.collective, ranks, count, Buffers::in_place);
        request.algorithm = &entry;
        request.params.segments = 5;
        request.params = entry.only_taken(request.params);
        if (entry.refusal(request.params)) continue;
        SCOPED_TRACE(std::string(name_of(entry.collective)) + " " + std::string(entry.name) + ", " +
                     std::to_string(ranks) + " ranks, " + std::to_string(count));
        // The smallest limit that permits the plan must be at least the used memory.
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

// A proof takes memory for its messages and their results, not for ranks times ranks, so several
// large proofs fit side by side. Memory is counted at allocation.

constexpr std::size_t kMiB = std::size_t{1} << 20;

// A round of radix 4 adds up data of 4 ranks, with partial sums that are no intervals of ranks; and
// the data of the last rounds arrived over many rounds.
TEST(VerifyMemory, HalvingAndDoublingOfAnyRadix) {
  constexpr int kRanks = 1 << 14;
  for (const int radix : {2, 3, 4}) {
    const Schedule schedule = halving_doubling_all_reduce(kRanks, radix);
    const CollectiveSpec goal{
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
