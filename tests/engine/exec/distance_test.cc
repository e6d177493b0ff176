#include "engine/exec/distance.h"

#include <gtest/gtest.h>

namespace rankine {
namespace {

TEST(Distance, IsFarUntilMeasured) { EXPECT_FALSE(Distance().is_near()); }

TEST(Distance, TheShortestOfTheLastFourLooksCounts) {
  Distance distance;
  distance.took(40);
  EXPECT_TRUE(distance.is_near());
  for (int i = 0; i < 3; ++i) distance.took(20'000);  // interrupted
  EXPECT_TRUE(distance.is_near());
  distance.took(150);
  EXPECT_FALSE(distance.is_near());
}

TEST(Distance, ALineThatNobodyWroteSinceSaysNothing) {
  Distance distance;
  Atomic<std::uint32_t> word{7};
  distance.look(word);
  for (int i = 0; i < 4; ++i) distance.took(1'000);
  for (int i = 0; i < 100; ++i) distance.look(word);  // it is in our cache: that would be near
  EXPECT_FALSE(distance.is_near());
}

}  // namespace
}  // namespace rankine
