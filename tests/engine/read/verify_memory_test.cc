// A proof takes as much memory as its messages and what they leave behind, not ranks times ranks:
// so several large ones have room side by side. Memory is counted where it is asked for.
#include <gtest/gtest.h>

#include "algorithms/halving_doubling.h"
#include "engine/read/verify.h"
#include "tests/engine/run/counted_memory.h"

namespace rankine {
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
