#include "algorithms/rational.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace rankine {
namespace {

__extension__ using Unsigned128 = unsigned __int128;

Int128 greatest_divisor(Int128 a, Int128 b) {
  while (b != 0) {
    a %= b;
    std::swap(a, b);
  }
  return a < 0 ? -a : a;
}

[[noreturn]] void too_large() { throw std::overflow_error("a fraction beyond 128 bits"); }

Int128 times(Int128 a, Int128 b) {
  Int128 product = 0;
  if (__builtin_mul_overflow(a, b, &product)) too_large();
  return product;
}

}  // namespace

Rational::Rational(Int128 top, Int128 bottom) : top_(top), bottom_(bottom) {
  if (bottom_ == 0) throw std::domain_error("a division by zero");
  constexpr Int128 kLeast = Int128{-1} << 126 << 1;  // has no negative, and so no lowest terms
  if (top_ == kLeast || bottom_ == kLeast) too_large();
  const Int128 divisor = greatest_divisor(top_, bottom_) * (bottom_ < 0 ? -1 : 1);
  top_ /= divisor;
  bottom_ /= divisor;
}

Rational Rational::operator+(Rational b) const {
  const Int128 common = greatest_divisor(bottom_, b.bottom_);
  Int128 sum = 0;
  if (__builtin_add_overflow(times(top_, b.bottom_ / common), times(b.top_, bottom_ / common),
                             &sum)) {
    too_large();
  }
  return {sum, times(bottom_ / common, b.bottom_)};
}

Rational Rational::operator*(Rational b) const {
  // Cancelled crosswise first: if the result fits, the intermediate products fit.
  const Int128 left = greatest_divisor(top_, b.bottom_);
  const Int128 right = greatest_divisor(b.top_, bottom_);
  return {times(top_ / left, b.top_ / right), times(bottom_ / right, b.bottom_ / left)};
}

Rational Rational::operator/(Rational b) const { return *this * Rational(b.bottom_, b.top_); }

bool Rational::operator<(Rational b) const {
  const Int128 common = greatest_divisor(bottom_, b.bottom_);
  return times(top_, b.bottom_ / common) < times(b.top_, bottom_ / common);
}

Rational Rational::floor() const { return {top_ / bottom_ - (top_ % bottom_ < 0 ? 1 : 0), 1}; }

double Rational::to_double() const {
  return top_ < 0 ? -nearest_double(-top_, bottom_) : nearest_double(top_, bottom_);
}

std::string Rational::to_string() const {
  return bottom_ == 1 ? to_text(top_) : to_text(top_) + "/" + to_text(bottom_);
}

double nearest_double(Int128 top, Int128 bottom) {
  if (top == 0) return 0;
  // A quotient of 55 to 64 bits with its lowest bit also set if there is a remainder: its
  // conversion to a double then rounds as the exact quotient would.
  constexpr Unsigned128 kEnough = Unsigned128{1} << 54;
  constexpr Unsigned128 kTooMany = Unsigned128{1} << 64;
  const auto divisor = static_cast<Unsigned128>(bottom);
  Unsigned128 quotient = static_cast<Unsigned128>(top) / divisor;
  Unsigned128 rest = static_cast<Unsigned128>(top) % divisor;
  bool left_over = false;
  int exponent = 0;
  for (; quotient >= kTooMany; quotient >>= 1, ++exponent) left_over |= (quotient & 1) != 0;
  for (; quotient < kEnough; --exponent) {
    rest *= 2;
    quotient = quotient * 2 + (rest >= divisor ? 1 : 0);
    if (rest >= divisor) rest -= divisor;
  }
  if (rest != 0 || left_over) quotient |= 1;
  return std::ldexp(static_cast<double>(static_cast<std::uint64_t>(quotient)), exponent);
}

std::string to_text(Int128 value) {
  if (value == 0) return "0";
  std::string digits;
  auto left = value < 0 ? -static_cast<Unsigned128>(value) : static_cast<Unsigned128>(value);
  for (; left != 0; left /= 10) digits += static_cast<char>('0' + static_cast<int>(left % 10));
  if (value < 0) digits += '-';
  std::reverse(digits.begin(), digits.end());
  return digits;
}

}  // namespace rankine
