#include "engine/run/kernels/string_copy.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace rankine {
namespace {

TEST(StringCopyTest, KnowsWhereItIsSlow) {
  alignas(4096) static char memory[3 * 4096];
  const auto lie_well = [&](std::size_t dst, std::size_t src) {
    return lie_well_for_strings(memory + dst, memory + src);
  };
  for (const std::size_t src : {4096, 4097, 4196, 8096, 8191}) {
    EXPECT_TRUE(lie_well(src, src)) << src;
    EXPECT_TRUE(lie_well(src - 4096, src)) << src;
    EXPECT_FALSE(lie_well(src + 1, src)) << src;
    EXPECT_FALSE(lie_well(src + 31, src)) << src;
    EXPECT_TRUE(lie_well(src + 32, src)) << src;
    EXPECT_TRUE(lie_well(src - 1, src)) << src;
    EXPECT_FALSE(lie_well(src - 4096 + 16, src)) << src << ", in an earlier page";
  }
}

}  // namespace
}  // namespace rankine
