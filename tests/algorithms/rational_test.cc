#include "algorithms/rational.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <stdexcept>

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

// What fits in the end must not overflow on the way.
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
    // Both are doubles exactly, so one division is correctly rounded.
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
  // A trace below the bits that are looked at decides: beyond 64 bits of quotient, and in the rest.
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
