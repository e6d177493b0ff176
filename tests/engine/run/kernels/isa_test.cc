// Built once, run under several values of RANKINE_ISA (see BUILD.bazel).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "engine/run/kernels/reduce.h"

namespace rankine {
namespace {

TEST(IsaTest, NamesRoundTrip) {
  for (int i = 0; i < kIsas; ++i) {
    EXPECT_EQ(parse_isa(name_of(static_cast<Isa>(i))), static_cast<Isa>(i));
  }
  EXPECT_EQ(parse_isa("avx"), std::nullopt);
  EXPECT_EQ(parse_isa(""), std::nullopt);
}

TEST(IsaTest, TheEnvironmentCapsTheBestAndNothingElse) {
  const char* text = std::getenv("RANKINE_ISA");
  const std::optional<Isa> cap = parse_isa(text == nullptr ? "" : text);
  EXPECT_EQ(best_isa(), std::min(hardware_isa(), cap.value_or(hardware_isa())));
  EXPECT_EQ(find_reduce(DataType::bf16, ReduceOp::sum),
            find_reduce(DataType::bf16, ReduceOp::sum, best_isa()));
  for (int i = 0; i <= static_cast<int>(hardware_isa()); ++i) {
    for (int j = 0; j < i; ++j) {
      EXPECT_NE(find_reduce(DataType::bf16, ReduceOp::sum, static_cast<Isa>(i)),
                find_reduce(DataType::bf16, ReduceOp::sum, static_cast<Isa>(j)));
    }
  }
}

TEST(IsaTest, BeyondTheHardwareIsTheBestOfTheHardware) {
  for (int i = static_cast<int>(hardware_isa()); i < kIsas; ++i) {
    EXPECT_EQ(find_reduce(DataType::f32, ReduceOp::sum, static_cast<Isa>(i)),
              find_reduce(DataType::f32, ReduceOp::sum, hardware_isa()));
  }
}

}  // namespace
}  // namespace rankine
