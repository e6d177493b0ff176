#include <rapidcheck.h>

#include "algorithms/catalogue.h"
#include "algorithms/formula.h"
#include "algorithms/parameters.h"
#include "algorithms/rational.h"
#include "tests/testing.h"

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
  EXPECT_EQ(Rational(1, 3) - Rational(3, 4), Rational(-5, 12));
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

TEST(Formula, IsExactWhereItCanBe) {
  const std::pair<const char*, Rational> cases[] = {
      {"1.5e-6*2", Rational(3, 1'000'000)},
      {"-2+3", 1},
      {"1+2*3", 7},
      {" ( 1 + 2 ) *3", 9},
      {"10-3-2", 5},
      {"12/3/2", 2},
      {"-2*-3", 6},
      {"900e9/0.1", Int128{9'000'000'000'000}},
      {"1/3*3", 1},
      {"sqrt(49/4)", Rational(7, 2)},
      {"log2(1/8)", -3},
      {"log3(243)", 5},
      {"clog2(9)", 4},
      {"flog3(26)", 2},
      {"clog3(27)", 3},
      {"if(3 >= 3, 1, 2)", 1},
      {"if(6-6, 1, 2)", 2},
      {"(6>=6) + 10*(5>=6) + 100*(6>6) + 1000*(6+1>6)", 1001},
      {"and(2 != 3, or(0, 1 < 2))", 1},
      {"and(6,0) + or(0,0) + 10*and(2,3) + 100*or(0,5)", 110},
      {"mod(17, 5) + divides(4, 12) + pow2(64) + pow3(9)", 5},
      {"divides(4,6) + divides(0,6) + pow2(6)", 0},
      {"ceil(7/2) + floor(-7/2) + abs(-3)", 3},
      {"ceil(-1/2)", 0},
      {"max(min(2, 5), 1)", 2},
      {"sum(k, 1, 4, pow(2,-k))", Rational(15, 16)},
      {"sum(k, 1, 0, k) + 1", 1},
      {"sum(i, 1, 3, sum(j, 1, i, i*j))", 1 + 6 + 18},
      {"flog2(pow(2,90)-1)", 89},
      {"clog2(pow(2,90)+1)", 91},
      {"clog3(pow(3,40)) + flog3(pow(3,40))", 80},
      {"flog2(7/2) + clog2(9/2)", 1 + 3},
      {"flog2(0) + flog2(-3) + clog2(1/2) + flog3(-5)", 0},
  };
  for (const auto& [formula, expected] : cases) {
    EXPECT_TRUE(value(formula).exact() && equal(value(formula), expected)) << formula;
  }
  EXPECT_TRUE(equal(value("2*(N-1)/N", {{"N", 8}}), Rational(7, 4)));
  EXPECT_EQ(to_string(value("7/4")), "7/4");
  EXPECT_FALSE(value("sqrt(2)").exact());
  EXPECT_TRUE(equal(value("log2(9)/log3(9)"), value("log2(3)")));
}

TEST(Formula, WhatDoesNotFitBecomesReal) {
  const Value large = value("pow(3, 100)*pow(7, 50)");
  EXPECT_FALSE(large.exact());
  EXPECT_NEAR(static_cast<double>(large.approximate() / 9.26877e89L), 1, 1e-3);
}

TEST(Formula, WithoutAValueIsAnError) {
  for (const char* formula : {"1/0", "log2(0)"}) EXPECT_THROW(value(formula), std::domain_error);
}

}  // namespace
}  // namespace rankine::formulas

namespace rankine {
namespace {

Rational value(std::string_view formula, int n = 6, int p = 3) {
  Params params{.ranks = n, .segments = p};
  return evaluate(formula, params);
}

TEST(ClosedForm, KnowsLettersAndFunctionsOfParameters) {
  const Params given{
      .ranks = 12, .root = 3, .peer = 4, .segments = 5, .group = 4, .aggregation = 2};
  const Params ternary{.ranks = 30, .radix = 3};
  const struct {
    const char* formula;
    Params params;
    Rational value;
  } cases[] = {
      {"N", given, 12},
      {"P", given, 5},
      {"G", given, 4},
      {"A", given, 2},
      {"Q", given, 8},
      {"H", given, 1},
      {"H", {.ranks = 12, .root = 3, .peer = 3}, 0},
      {"G", {.ranks = 12}, 3},
      {"A", {.ranks = 12}, 8},
      {"K", {.ranks = 30}, 2},
      {"Q", {.ranks = 30}, 16},
      {"K", ternary, 3},
      {"Q", ternary, 27},
      {"flog(K,N)+10*clog(K,N)", ternary, 43},
      {"clog(3,27)+10*flog(3,26)+100*clog(3,1)", ternary, 23},
      {"S", {.ranks = 22}, 5},
      {"S", {.ranks = 4, .skips = {3, 2, 1}}, 3},
      {"L", {.ranks = 1}, 0},
      {"L", {.ranks = 16, .levels = {2, 4}}, 3},
      {"L", {.ranks = 16, .levels = {1, 16}}, 1},  // levels that change nothing
      {"outermost", {.ranks = 24, .levels = {2, 6}}, 6},
      {"outermost", {.ranks = 6, .levels = {2, 6}}, 2},
      {"outermost", {.ranks = 6, .levels = {6}}, 1},
      {"groups*10+last", {.ranks = 12, .group = 4}, 34},
      {"groups*10+last", {.ranks = 13, .group = 4}, 41},
      {"most(a)*100+next(a)", {.ranks = 15, .dims = {3, 5}}, 503},
      {"most(a)*100+next(a)", {.ranks = 15, .dims = {5, 3}}, 503},
      {"most(a)*100+next(a)", {.ranks = 32, .dims = {4, 4, 2}}, 404},
      {"most(a)*100+next(a)", {.ranks = 42, .dims = {2, 7, 3}}, 703},
      {"most(a)*100+next(a)", {.ranks = 7, .dims = {7}}, 700},
      {"times(pow(2,flog2(a)))", {.ranks = 105, .dims = {3, 5, 7}}, 2 * 4 * 4},
      {"times(a)+each(a)", {.ranks = 12, .dims = {3, 4}}, 12 + 7},
      {"times(a-mod(a,2)*(a>1))", {.ranks = 1, .dims = {1}}, 1},
  };
  for (const auto& c : cases) EXPECT_EQ(evaluate(c.formula, c.params), c.value) << c.formula;
  EXPECT_THROW(evaluate("flog(1,N)", ternary), std::domain_error);
  EXPECT_THROW(evaluate("clog(5/2,N)", ternary), std::domain_error);
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
      {"min(N)", "formula 'min(N)', character 7: "},
      {"sin(N)", "formula 'sin(N)', character 7: "},
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
