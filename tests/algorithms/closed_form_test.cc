#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/formula.h"
#include "algorithms/parameters.h"
#include "algorithms/rational.h"

namespace rankine {
namespace {

Int128 power_of_two(int exponent) { return Int128{1} << exponent; }

TEST(Rational, IsKeptInLowestTerms) {
  const Rational half(-3, -6);
  EXPECT_TRUE(half == Rational(1, 2));
  EXPECT_EQ(half.to_string(), "1/2");
  EXPECT_EQ(Rational(7, -7).to_string(), "-1");
  EXPECT_TRUE(Rational(0, -5) == Rational(0));
  EXPECT_THROW(Rational(1, 0), std::logic_error);
}

TEST(Rational, ComputesExactly) {
  EXPECT_TRUE(Rational(1, 3) + Rational(1, 6) == Rational(1, 2));
  EXPECT_TRUE(Rational(2, 3) * Rational(9, 4) == Rational(3, 2));
  EXPECT_TRUE(Rational(2, 3) / Rational(4, 9) == Rational(3, 2));
  EXPECT_TRUE(Rational(1, 3) < Rational(34, 100));
  EXPECT_FALSE(Rational(1, 3) < Rational(1, 3));
}

TEST(Rational, SubtractsAndRoundsDown) {
  EXPECT_EQ(Rational(1, 3) - Rational(3, 4), Rational(-5, 12));
  EXPECT_EQ(Rational(7, 2).floor(), 3);
  EXPECT_EQ(Rational(-7, 2).floor(), -4);
  EXPECT_EQ(Rational(-4).floor(), -4);
}

// Intermediate results must not overflow if the final result fits.
TEST(Rational, CancelsBeforeItMultiplies) {
  const Rational large(power_of_two(100), 3), small(9, power_of_two(99));
  EXPECT_TRUE(large * small == Rational(6));
}

TEST(Rational, SaysWhenItLeaves128Bits) {
  const Rational large(power_of_two(100), 1);
  EXPECT_THROW(large * large, std::overflow_error);
  EXPECT_THROW(Rational(1, power_of_two(70) - 1) + Rational(1, power_of_two(70) - 3),
               std::overflow_error);
}

TEST(NearestDouble, IsTheQuotientOfSmallNumbers) {
  const bool holds = rc::check("as the hardware divides", [] {
    // Both values are exact doubles, so one division is correctly rounded.
    const auto top = *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 53);
    const auto bottom = *rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 53);
    RC_ASSERT(nearest_double(top, bottom) ==
              static_cast<double>(top) / static_cast<double>(bottom));
  });
  EXPECT_TRUE(holds);
}

TEST(NearestDouble, RoundsOnceAndTiesToEven) {
  const Int128 one = power_of_two(53);
  EXPECT_EQ(nearest_double(one + 1, 1), 9007199254740992.0);      // half way: to even, down
  EXPECT_EQ(nearest_double(one + 3, 1), 9007199254740996.0);      // half way: to even, up
  EXPECT_EQ(nearest_double(2 * one + 3, 2), 9007199254740994.0);  // above half way
  // A bit below the bits of the quotient decides the rounding: one beyond 64 bits, and one in the
  // remainder.
  EXPECT_EQ(nearest_double(power_of_two(120) + power_of_two(67) + 1, 1),
            std::ldexp(1.0, 120) + std::ldexp(1.0, 68));
  EXPECT_EQ(nearest_double(power_of_two(120) + power_of_two(67), 1), std::ldexp(1.0, 120));
  const Int128 bottom = power_of_two(60);
  EXPECT_EQ(nearest_double((one + 1) * bottom + 1, bottom), 9007199254740994.0);
}

TEST(NearestDouble, ReachesFarBothWays) {
  EXPECT_EQ(nearest_double(0, 7), 0.0);
  EXPECT_EQ(nearest_double(1, power_of_two(126)), std::ldexp(1.0, -126));
  EXPECT_EQ(nearest_double(power_of_two(126), 1), std::ldexp(1.0, 126));
  EXPECT_EQ(nearest_double(1, 10), 0.1);
  EXPECT_EQ(Rational(-1, 10).to_double(), -0.1);
}

TEST(ToText, WritesAllDigits) {
  EXPECT_EQ(to_text(0), "0");
  EXPECT_EQ(to_text(-120), "-120");
  EXPECT_EQ(to_text(power_of_two(100)), "1267650600228229401496703205376");
}

}  // namespace
}  // namespace rankine

// The language of formulas: exact values stay exact, and errors name the text that cannot be read.

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

namespace rankine {
namespace {

Rational value(std::string_view formula, int n = 6, int p = 3) {
  Params params;
  params.ranks = n;
  params.segments = p;
  return evaluate(formula, params);
}

TEST(ClosedForm, KnowsTheRulesOfArithmetic) {
  EXPECT_EQ(value("1+2*3"), 7);
  EXPECT_EQ(value("(1+2)*3"), 9);
  EXPECT_EQ(value("10-3-2"), 5);
  EXPECT_EQ(value("12/3/2"), 2);
  EXPECT_EQ(value("-2*-3"), 6);
  EXPECT_EQ(value(" 2 * ( N - 1 ) / N "), Rational(5, 3));
}

TEST(ClosedForm, KnowsSkipsAndLevels) {
  EXPECT_EQ(evaluate("S", {.ranks = 22}), 5);
  EXPECT_EQ(evaluate("S", {.ranks = 4, .skips = {3, 2, 1}}), 3);
  EXPECT_EQ(evaluate("L", {.ranks = 1}), 0);
  EXPECT_EQ(evaluate("L", {.ranks = 16, .levels = {2, 4}}), 3);
  EXPECT_EQ(evaluate("L", {.ranks = 16, .levels = {1, 16}}), 1);  // levels that change nothing
}

TEST(ClosedForm, KnowsTheGroups) {
  EXPECT_EQ(evaluate("groups", {.ranks = 12, .group = 4}), 3);
  EXPECT_EQ(evaluate("last", {.ranks = 12, .group = 4}), 4);
  EXPECT_EQ(evaluate("groups", {.ranks = 13, .group = 4}), 4);
  EXPECT_EQ(evaluate("last", {.ranks = 13, .group = 4}), 1);
}

TEST(ClosedForm, KnowsTheLetters) {
  Params params;
  params.ranks = 12;
  params.segments = 5;
  params.group = 4;
  params.aggregation = 2;
  params.root = 3;
  params.peer = 3;
  EXPECT_EQ(evaluate("N", params), 12);
  EXPECT_EQ(evaluate("P", params), 5);
  EXPECT_EQ(evaluate("G", params), 4);
  EXPECT_EQ(evaluate("A", params), 2);
  EXPECT_EQ(evaluate("Q", params), 8);
  EXPECT_EQ(evaluate("H", params), 0);
  params.peer = 4;
  EXPECT_EQ(evaluate("H", params), 1);
  params.group = params.aggregation = 0;
  EXPECT_EQ(evaluate("G", params), 3);
  EXPECT_EQ(evaluate("A", params), 8);
}

TEST(ClosedForm, KnowsRadices) {
  Params params;
  params.ranks = 30;
  EXPECT_EQ(evaluate("K", params), 2);
  EXPECT_EQ(evaluate("Q", params), 16);
  params.radix = 3;
  EXPECT_EQ(evaluate("K", params), 3);
  EXPECT_EQ(evaluate("Q", params), 27);
  EXPECT_EQ(evaluate("flog(K,N)+10*clog(K,N)", params), 43);
  EXPECT_EQ(evaluate("clog(3,27)+10*flog(3,26)+100*clog(3,1)", params), 23);
  EXPECT_THROW(evaluate("flog(1,N)", params), std::domain_error);
  EXPECT_THROW(evaluate("clog(5/2,N)", params), std::domain_error);
}

TEST(ClosedForm, KnowsTheOutermostLevel) {
  EXPECT_EQ(evaluate("outermost", {.ranks = 24, .levels = {2, 6}}), 6);
  EXPECT_EQ(evaluate("outermost", {.ranks = 6, .levels = {2, 6}}), 2);
  EXPECT_EQ(evaluate("outermost", {.ranks = 6, .levels = {6}}), 1);
}

TEST(ClosedForm, KnowsTheLargestSizeButOne) {
  const auto next = [](std::vector<int> dims, int ranks) {
    return evaluate("most(a)*100+next(a)", {.ranks = ranks, .dims = std::move(dims)});
  };
  EXPECT_EQ(next({3, 5}, 15), 503);
  EXPECT_EQ(next({5, 3}, 15), 503);
  EXPECT_EQ(next({4, 4, 2}, 32), 404);
  EXPECT_EQ(next({2, 7, 3}, 42), 703);
  EXPECT_EQ(next({7}, 7), 700);
}

TEST(ClosedForm, MultipliesOverTheSizes) {
  EXPECT_EQ(evaluate("times(pow(2,flog2(a)))", {.ranks = 105, .dims = {3, 5, 7}}), 2 * 4 * 4);
  EXPECT_EQ(evaluate("times(a)+each(a)", {.ranks = 12, .dims = {3, 4}}), 12 + 7);
  EXPECT_EQ(evaluate("times(a-mod(a,2)*(a>1))", {.ranks = 1, .dims = {1}}), 1);
}

TEST(ClosedForm, Compares) {
  EXPECT_EQ(value("N>=6"), 1);
  EXPECT_EQ(value("N>6"), 0);
  EXPECT_EQ(value("N+1>6"), 1);
  EXPECT_EQ(value("5>=N"), 0);
  EXPECT_EQ(value("if(N/2>=3,10,20)"), 10);
  EXPECT_EQ(value("(N>5)+(N>6)"), 1);
}

TEST(ClosedForm, KnowsTheFunctions) {
  EXPECT_EQ(value("min(3,N)"), 3);
  EXPECT_EQ(value("max(3,N)"), 6);
  EXPECT_EQ(value("if(N-6,1,2)"), 2);
  EXPECT_EQ(value("ceil(N/4)"), 2);
  EXPECT_EQ(value("floor(N/4)"), 1);
  EXPECT_EQ(value("ceil(-1/2)"), 0);
  EXPECT_EQ(value("flog2(N)"), 2);
  EXPECT_EQ(value("clog2(N)"), 3);
  EXPECT_EQ(value("flog2(0)"), 0);
  EXPECT_EQ(value("flog2(-3)"), 0);
  EXPECT_EQ(value("pow(2,3)"), 8);
  EXPECT_EQ(value("pow(2,-2)"), Rational(1, 4));
  EXPECT_EQ(value("pow2(8)"), 1);
  EXPECT_EQ(value("pow2(N)"), 0);
  EXPECT_EQ(value("divides(3,N)"), 1);
  EXPECT_EQ(value("divides(4,N)"), 0);
  EXPECT_EQ(value("divides(0,N)"), 0);
  EXPECT_EQ(value("and(N,0)+and(2,3)+or(0,0)+or(0,5)"), 2);
}

TEST(ClosedForm, CountsOnes) {
  unsigned ones = 0;
  for (unsigned n = 0; n < 300; ++n) {
    EXPECT_EQ(value("ones(N)", static_cast<int>(n)), static_cast<int>(ones)) << n;
    ones += static_cast<unsigned>(std::popcount(n));
  }
  EXPECT_EQ(value("ones(N)", 64), 64 * 6 / 2);
}

TEST(ClosedForm, ShowsWhereItCannotBeRead) {
  const struct {
    const char *formula, *message;
  } cases[] = {
      {"N+", "formula 'N+', character 3: expected a number, a letter or a function"},
      {"2*(N", "formula '2*(N', character 5: expected ')'"},
      {"N N", "formula 'N N', character 3: expected the end"},
      {"min(N)", "formula 'min(N)', character 7: expected 2 arguments"},
      {"sin(N)",
       "formula 'sin(N)', character 7: expected a known function; 'sin' is unknown; allowed "
       "are sum, "},
      {"", "formula '', character 1: expected a number, a letter or a function"},
  };
  for (const auto& c : cases) {
    try {
      value(c.formula);
      ADD_FAILURE() << c.formula;
    } catch (const std::logic_error& error) {
      EXPECT_EQ(std::string(error.what()).substr(0, std::string(c.message).size()), c.message);
    }
  }
  EXPECT_THROW(value("1/(N-6)"), std::logic_error);
}

}  // namespace
}  // namespace rankine
