// A claim's cases, as written and in their order.
#include "engine/papers/condition.h"

#include <gtest/gtest.h>

namespace rankine::formulas {
namespace {

TEST(ParameterSets, ProductsInOrder) {
  const ParameterSets sets = parameter_sets("N=2..4; P=1,N; M=1000*min(N,P)");
  EXPECT_EQ(sets.order, (std::vector<std::string>{"N", "P", "M"}));
  ASSERT_EQ(sets.sets.size(), 6u);
  EXPECT_TRUE(equal(sets.sets[5].at("M"), 4000));
  EXPECT_TRUE(equal(sets.sets[4].at("P"), 1));
  EXPECT_EQ(parameter_sets("").sets.size(), 1u);
}

}  // namespace
}  // namespace rankine::formulas
