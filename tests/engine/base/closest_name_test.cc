#include "engine/base/status.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

namespace rankine {
namespace {

TEST(Closest, FindsWhatWasMeant) {
  constexpr std::array<std::string_view, 4> kNames = {"all_reduce", "all_gather", "reduce",
                                                      "broadcast"};
  EXPECT_EQ(closest("allreduce", kNames), "all_reduce");
  EXPECT_EQ(closest("all_reduec", kNames), "all_reduce");
  EXPECT_EQ(closest("ALL-GATHER", kNames), "all_gather");
  EXPECT_EQ(closest("broad", kNames), "broadcast");
  EXPECT_EQ(closest("xyz", kNames), "");
  EXPECT_EQ(closest("", kNames), "");
  EXPECT_EQ(closest(std::string(1000, 'a'), kNames), "");
  EXPECT_EQ(did_you_mean("all_reduec", kNames), "; did you mean 'all_reduce'?");
  EXPECT_EQ(did_you_mean("xyz", kNames), "");
}

}  // namespace
}  // namespace rankine
