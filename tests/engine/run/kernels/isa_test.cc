// The kernels under several limits on the instruction set, each in a process of its own, because a
// process reads RANKINE_ISA once. An unknown name limits nothing.

#include "engine/base/child_process.h"
#include "engine/run/kernels/reduce.h"
#include "tests/testing.h"

namespace rankine {
namespace {

TEST(IsaTest, NamesRoundTrip) {
  for (int i = 0; i < kIsas; ++i) {
    EXPECT_EQ(parse_isa(name_of(static_cast<Isa>(i))), static_cast<Isa>(i));
  }
  EXPECT_EQ(parse_isa("avx"), std::nullopt);
  EXPECT_EQ(parse_isa(""), std::nullopt);
}

// The environment caps the best and nothing else; beyond the hardware is the best of the hardware.
void expect_capped(const char* text) {
  const Isa cap = parse_isa(text).value_or(hardware_isa());
  EXPECT_EQ(best_isa(), std::min(hardware_isa(), cap)) << text;
  const auto kernel = [](Isa isa) { return find_reduce(DataType::bf16, ReduceOp::sum, isa); };
  EXPECT_EQ(find_reduce(DataType::bf16, ReduceOp::sum), kernel(best_isa())) << text;
  for (int i = 0; i < kIsas; ++i) {
    for (int j = 0; j < i; ++j) {
      const bool same = j >= static_cast<int>(hardware_isa());
      EXPECT_EQ(kernel(static_cast<Isa>(i)) == kernel(static_cast<Isa>(j)), same) << text;
    }
  }
}

TEST(IsaTest, TheEnvironmentCapsTheBestAndNothingElse) {
  for (const char* text : {"avx2", "avx512", "neon", "portable", "unknown"}) {
    ChildProcess child([text] {
      setenv("RANKINE_ISA", text, 1);
      expect_capped(text);
      return testing::Test::HasFailure() ? 1 : 0;
    });
    EXPECT_EQ(child.wait(), 0) << text;
  }
}

}  // namespace
}  // namespace rankine
