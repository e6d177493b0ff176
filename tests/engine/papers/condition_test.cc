// Conditions are found from cases alone.
#include "engine/papers/condition.h"

#include <gtest/gtest.h>

#include <functional>

#include "engine/papers/condition.h"

namespace rankine::claims {
namespace {

std::string found(std::string_view sets, std::string_view truth) {
  const formulas::ParameterSets parameters = formulas::parameter_sets(sets);
  std::vector<bool> holds;
  for (const Letters& letters : parameters.sets) {
    holds.push_back(!equal(evaluate(truth, letters), 0));
  }
  return condition_of(parameters.order, parameters.sets, holds);
}

TEST(Condition, Single) {
  EXPECT_EQ(found("N=2..17", "pow2(N)"), "N is a power of two");
  EXPECT_EQ(found("N=2..30", "pow3(N)"), "N is a power of three");
  EXPECT_EQ(found("N=2..17", "mod(N,2)"), "N is odd");
  EXPECT_EQ(found("N=2..17; M=10,20", "N >= 5"), "N >= 5");
  EXPECT_EQ(found("N=2..17; M=10,20", "M = 10"), "M = 10");
}

TEST(Condition, Two) {
  EXPECT_EQ(found("N=2..17; k=1..4", "and(pow2(N), k >= 2)"), "N is a power of two and k >= 2");
  EXPECT_EQ(found("N=2..17; k=1..4", "or(N = 2, k = 1)"), "N = 2 or k = 1");
}

TEST(Condition, ElseAList) {
  EXPECT_EQ(found("N=2..9; k=1", "or(N = 2, or(N = 4, N = 7))"), "N = 2; N = 4; N = 7");
}

}  // namespace
}  // namespace rankine::claims
