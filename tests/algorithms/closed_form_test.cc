#include "algorithms/parameters.h"

#include <gtest/gtest.h>

#include <bit>
#include <stdexcept>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"

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
      {"min(N)", "formula 'min(N)', character 7: expected another number of arguments"},
      {"sin(N)",
       "formula 'sin(N)', character 7: expected a function that is known; 'sin' is not; functions "
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
