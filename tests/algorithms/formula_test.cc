// The language of formulas: what is exact stays exact, and what cannot be read is said.
#include "algorithms/formula.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace rankine::formulas {
namespace {

Value value(std::string_view text, const Letters& letters = {}) { return evaluate(text, letters); }

TEST(Formula, NamesTheLettersThatThereAre) {
  try {
    evaluate("N * x", Letters{{"N", Value(2)}, {"M", Value(3)}});
    ADD_FAILURE() << "x is known";
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(), "formula 'N * x': 'x' is not known; letters here are M, N");
  }
}

TEST(Formula, ExactArithmetic) {
  EXPECT_TRUE(equal(value("2*(N-1)/N", {{"N", 8}}), Rational(7, 4)));
  EXPECT_TRUE(equal(value("1.5e-6*2"), Rational(3, 1'000'000)));
  EXPECT_TRUE(equal(value("-2+3"), 1));
  EXPECT_TRUE(value("900e9/0.1").exact());
  EXPECT_EQ(to_string(value("7/4")), "7/4");
  EXPECT_EQ(to_string(value("1/3*3")), "1");
}

TEST(Formula, RootsAndLogarithmsAreExactWhereTheyAreWhole) {
  EXPECT_TRUE(value("sqrt(49/4)").exact());
  EXPECT_FALSE(value("sqrt(2)").exact());
  EXPECT_TRUE(value("log2(1/8)").exact());
  EXPECT_TRUE(equal(value("log3(243)"), 5));
  EXPECT_TRUE(equal(value("clog2(9)"), 4));
  EXPECT_TRUE(equal(value("flog3(26)"), 2));
  EXPECT_TRUE(equal(value("clog3(27)"), 3));
  EXPECT_TRUE(equal(value("log2(9)/log3(9)"), value("log2(3)")));
}

TEST(Formula, FunctionsAndComparisons) {
  EXPECT_TRUE(equal(value("if(3 >= 3, 1, 2)"), 1));
  EXPECT_TRUE(equal(value("and(2 != 3, or(0, 1 < 2))"), 1));
  EXPECT_TRUE(equal(value("mod(17, 5) + divides(4, 12) + pow2(64) + pow3(9)"), 5));
  EXPECT_TRUE(equal(value("ceil(7/2) + floor(-7/2) + abs(-3)"), 3));
  EXPECT_TRUE(equal(value("max(min(2, 5), 1)"), 2));
}

TEST(Formula, Sums) {
  EXPECT_TRUE(equal(value("sum(k, 1, 4, pow(2,-k))"), Rational(15, 16)));
  EXPECT_TRUE(equal(value("sum(k, 1, 0, k) + 1"), 1));
  EXPECT_TRUE(equal(value("sum(i, 1, 3, sum(j, 1, i, i*j))"), 1 + 6 + 18));
}

TEST(Formula, WhatDoesNotFitBecomesReal) {
  const Value large = value("pow(3, 100)*pow(7, 50)");
  EXPECT_FALSE(large.exact());
  EXPECT_NEAR(static_cast<double>(large.approximate() / 9.26877e89L), 1, 1e-3);
}

TEST(Formula, MistakesAreNamed) {
  EXPECT_THROW(value("N+1"), std::logic_error);
  EXPECT_THROW(value("2*(3"), std::logic_error);
  EXPECT_THROW(value("cosine(1)"), std::logic_error);
  EXPECT_THROW(value("1 2"), std::logic_error);
  EXPECT_THROW(value("1/0"), std::domain_error);
  EXPECT_THROW(value("log2(0)"), std::domain_error);
}

TEST(Formula, WholeLogarithmsAreExactFarOut) {
  EXPECT_TRUE(equal(value("flog2(pow(2,90)-1)"), 89));
  EXPECT_TRUE(equal(value("clog2(pow(2,90)+1)"), 91));
  EXPECT_TRUE(equal(value("clog3(pow(3,40)) + flog3(pow(3,40))"), 80));
  EXPECT_TRUE(equal(value("flog2(7/2) + clog2(9/2)"), 1 + 3));
  EXPECT_TRUE(equal(value("flog2(0) + clog2(1/2) + flog3(-5)"), 0));
}

}  // namespace
}  // namespace rankine::formulas
