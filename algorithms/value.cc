#include "algorithms/value.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <stdexcept>

namespace rankine::formulas {
namespace {

// The exact result where both are exact and 128 bits hold it.
template <class Compute>
std::optional<Rational> exactly(const Value& a, const Value& b, const Compute& compute) {
  if (!a.exact() || !b.exact()) return std::nullopt;
  try {
    return compute(a.rational(), b.rational());
  } catch (const std::overflow_error&) {
    return std::nullopt;
  }
}

// The whole number whose square is meant, found from its approximation.
std::optional<Int128> whole_root(Int128 a) {
  const auto root = static_cast<Int128>(std::llround(std::sqrt(static_cast<long double>(a))));
  Int128 square = 0;
  if (__builtin_mul_overflow(root, root, &square) || square != a) return std::nullopt;
  return root;
}

}  // namespace

Value Value::real(long double value) {
  Value out;
  out.number_ = value;
  return out;
}

long double Value::approximate() const {
  if (!exact()) return std::get<long double>(number_);
  return static_cast<long double>(rational().top()) / static_cast<long double>(rational().bottom());
}

Value Value::operator+(const Value& b) const {
  const auto sum = exactly(*this, b, [](const Rational& x, const Rational& y) { return x + y; });
  return sum ? Value(*sum) : real(approximate() + b.approximate());
}

Value Value::operator*(const Value& b) const {
  const auto product =
      exactly(*this, b, [](const Rational& x, const Rational& y) { return x * y; });
  return product ? Value(*product) : real(approximate() * b.approximate());
}

Value Value::operator/(const Value& b) const {
  if (b.approximate() == 0) throw std::domain_error("a division by zero");
  return *this * (b.exact() ? Value(Rational(1) / b.rational()) : real(1 / b.approximate()));
}

Value Value::floor() const {
  if (exact()) return rational().floor();
  const long double whole = std::floor(approximate() + kRounding);
  constexpr long double kMost = 9e18L;
  return std::fabs(whole) < kMost ? Value(static_cast<long long>(whole)) : real(whole);
}

bool equal(const Value& a, const Value& b) {
  if (a.exact() && b.exact()) return a.rational() == b.rational();
  const long double x = a.approximate(), y = b.approximate();
  return std::fabs(x - y) <= kRounding * std::max(std::fabs(x), std::fabs(y));
}

bool less(const Value& a, const Value& b) {
  if (equal(a, b)) return false;
  const Value difference = a - b;
  return difference.approximate() < 0;
}

Value square_root(const Value& a) {
  if (a.approximate() < 0) throw std::domain_error("the root of a negative number");
  if (a.exact()) {
    const auto top = whole_root(a.rational().top()), bottom = whole_root(a.rational().bottom());
    if (top && bottom) return Rational(*top, *bottom);
  }
  return Value::real(std::sqrt(a.approximate()));
}

Value logarithm(const Value& a, int base) {
  if (a.approximate() <= 0) throw std::domain_error("the logarithm of zero or less");
  if (a.exact() && (a.rational().top() == 1 || a.whole())) {
    Int128 of = a.whole() ? a.rational().top() : a.rational().bottom();
    int k = 0;
    for (; of % base == 0; of /= base) ++k;
    if (of == 1) return a.whole() ? k : -k;
  }
  return Value::real(std::log(a.approximate()) / std::log(static_cast<long double>(base)));
}

Value whole_logarithm(const Value& a, int base, bool up) {
  if (less(a, 1)) return 0;
  const Value n = up ? a.ceil() : a.floor();
  if (!n.whole()) return up ? logarithm(n, base).ceil() : logarithm(n, base).floor();
  int k = 0;
  for (Int128 left = n.rational().top(); left >= base; left /= base) ++k;
  return up && !equal(power(base, k), n) ? k + 1 : k;
}

Value power(const Value& a, const Value& b) {
  constexpr int kLargest = 256;
  if (!b.whole() || std::fabs(b.approximate()) > kLargest) {
    return Value::real(std::pow(a.approximate(), b.approximate()));
  }
  const auto times = static_cast<int>(b.rational().top());
  Value out = 1;
  for (int i = std::abs(times); i > 0; --i) out = out * a;
  return times < 0 ? Value(1) / out : out;
}

std::string to_string(const Value& value) {
  constexpr Int128 kLongTop = 1'000'000'000, kLongPart = 10'000;
  if (value.exact()) {
    const Int128 top = value.rational().top(), bottom = value.rational().bottom();
    const bool short_top = top > -kLongTop && top < (bottom == 1 ? kLongTop : kLongPart);
    if (short_top && bottom < kLongPart) return value.rational().to_string();
  }
  char text[64];
  std::snprintf(text, sizeof(text), "%.6Lg", value.approximate());
  return text;
}

}  // namespace rankine::formulas
