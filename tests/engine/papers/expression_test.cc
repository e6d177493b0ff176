// The papers' formulas as text: what is exact stays exact, and what cannot be read is said.
#include "engine/papers/expression.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace rankine::expressions {
namespace {

Value value(std::string_view text, const Letters& letters = {}) { return evaluate(text, letters); }

TEST(Expression, ExactArithmetic) {
  EXPECT_TRUE(equal(value("2*(N-1)/N", {{"N", 8}}), Value::fraction(7, 4)));
  EXPECT_TRUE(equal(value("1.5e-6*2"), Value::fraction(3, 1'000'000)));
  EXPECT_TRUE(equal(value("-2+3"), 1));
  EXPECT_TRUE(value("900e9/0.1").exact());
  EXPECT_EQ(to_string(value("7/4")), "7/4");
  EXPECT_EQ(to_string(value("1/3*3")), "1");
}

TEST(Expression, RootsAndLogarithmsAreExactWhereTheyAreWhole) {
  EXPECT_TRUE(value("sqrt(49/4)").exact());
  EXPECT_FALSE(value("sqrt(2)").exact());
  EXPECT_TRUE(value("log2(1/8)").exact());
  EXPECT_TRUE(equal(value("log3(243)"), 5));
  EXPECT_TRUE(equal(value("clog2(9)"), 4));
  EXPECT_TRUE(equal(value("flog3(26)"), 2));
  EXPECT_TRUE(equal(value("clog3(27)"), 3));
  EXPECT_TRUE(equal(value("log2(9)/log3(9)"), value("log2(3)")));
}

TEST(Expression, FunctionsAndComparisons) {
  EXPECT_TRUE(equal(value("if(3 >= 3, 1, 2)"), 1));
  EXPECT_TRUE(equal(value("and(2 != 3, or(0, 1 < 2))"), 1));
  EXPECT_TRUE(equal(value("mod(17, 5) + divides(4, 12) + pow2(64) + pow3(9)"), 5));
  EXPECT_TRUE(equal(value("ceil(7/2) + floor(-7/2) + abs(-3)"), 3));
  EXPECT_TRUE(equal(value("max(min(2, 5), 1)"), 2));
}

TEST(Expression, Sums) {
  EXPECT_TRUE(equal(value("sum(k, 1, 4, pow(2,-k))"), Value::fraction(15, 16)));
  EXPECT_TRUE(equal(value("sum(k, 1, 0, k) + 1"), 1));
  EXPECT_TRUE(equal(value("sum(i, 1, 3, sum(j, 1, i, i*j))"), 1 + 6 + 18));
}

TEST(Expression, WhatDoesNotFitBecomesReal) {
  const Value large = value("pow(3, 100)*pow(7, 50)");
  EXPECT_FALSE(large.exact());
  EXPECT_NEAR(static_cast<double>(large.approximate() / 9.26877e89L), 1, 1e-3);
}

TEST(Expression, MistakesAreNamed) {
  EXPECT_THROW(value("N+1"), std::logic_error);
  EXPECT_THROW(value("2*(3"), std::logic_error);
  EXPECT_THROW(value("cosine(1)"), std::logic_error);
  EXPECT_THROW(value("1 2"), std::logic_error);
  EXPECT_THROW(value("1/0"), std::domain_error);
  EXPECT_THROW(value("log2(0)"), std::domain_error);
}

TEST(ParameterSets, ProductsInOrder) {
  const ParameterSets sets = parameter_sets("N=2..4; P=1,N; M=1000*min(N,P)");
  EXPECT_EQ(sets.order, (std::vector<std::string>{"N", "P", "M"}));
  ASSERT_EQ(sets.sets.size(), 6u);
  EXPECT_TRUE(equal(sets.sets[5].at("M"), 4000));
  EXPECT_TRUE(equal(sets.sets[4].at("P"), 1));
  EXPECT_EQ(parameter_sets("").sets.size(), 1u);
}

}  // namespace
}  // namespace rankine::expressions
