#include "engine/papers/value.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>

namespace rankine::expressions {
namespace {

Wide gcd(Wide a, Wide b) {
  if (a < 0) a = -a;
  if (b < 0) b = -b;
  while (b != 0) {
    const Wide rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// Each returns false where 128 bits do not hold the result.
bool times(Wide a, Wide b, Wide& out) { return !__builtin_mul_overflow(a, b, &out); }
bool plus(Wide a, Wide b, Wide& out) { return !__builtin_add_overflow(a, b, &out); }

// The whole number whose square or power is meant, found from its approximation.
bool whole_root(Wide a, Wide& root) {
  if (a < 0) return false;
  root = static_cast<Wide>(std::llround(std::sqrt(static_cast<long double>(a))));
  Wide square;
  return times(root, root, square) && square == a;
}

}  // namespace

Value Value::fraction(Wide top, Wide bottom) {
  if (bottom == 0) throw std::domain_error("a division by zero");
  constexpr Wide kLeast = Wide{-1} << 126 << 1;  // has no negative, and so no lowest terms
  if (top == kLeast || bottom == kLeast) {
    return real(static_cast<long double>(top) / static_cast<long double>(bottom));
  }
  Wide divisor = gcd(top, bottom);
  if (bottom < 0) divisor = -divisor;
  Value value;
  value.top_ = top / divisor;
  value.bottom_ = bottom / divisor;
  return value;
}

Value Value::real(long double value) {
  Value out;
  out.exact_ = false;
  out.real_ = value;
  return out;
}

bool Value::whole() const { return exact_ && bottom_ == 1; }

long double Value::approximate() const {
  return exact_ ? static_cast<long double>(top_) / static_cast<long double>(bottom_) : real_;
}

Value Value::operator+(const Value& b) const {
  Wide left, right, top, bottom;
  const Wide shared = exact_ && b.exact_ ? gcd(bottom_, b.bottom_) : 1;
  if (exact_ && b.exact_ && times(top_, b.bottom_ / shared, left) &&
      times(b.top_, bottom_ / shared, right) && plus(left, right, top) &&
      times(bottom_, b.bottom_ / shared, bottom)) {
    return fraction(top, bottom);
  }
  return real(approximate() + b.approximate());
}

Value Value::operator-(const Value& b) const { return *this + Value(-1) * b; }

Value Value::operator*(const Value& b) const {
  if (exact_ && b.exact_) {
    // Crosswise in lowest terms first, so that less overflows.
    const Value x = fraction(top_, b.bottom_), y = fraction(b.top_, bottom_);
    Wide top, bottom;
    if (times(x.top_, y.top_, top) && times(x.bottom_, y.bottom_, bottom)) {
      return fraction(top, bottom);
    }
  }
  return real(approximate() * b.approximate());
}

Value Value::operator/(const Value& b) const {
  if (b.exact_ ? b.top_ == 0 : b.real_ == 0) throw std::domain_error("a division by zero");
  return *this * (b.exact_ ? fraction(b.bottom_, b.top_) : real(1 / b.real_));
}

Value Value::floor() const {
  if (!exact_) {
    const long double whole = std::floor(real_ + kRounding);
    constexpr long double kMost = 9e18L;
    return std::fabs(whole) < kMost ? Value(static_cast<long long>(whole)) : real(whole);
  }
  Wide quotient = top_ / bottom_;
  if (top_ % bottom_ < 0) --quotient;
  return fraction(quotient, 1);
}

bool equal(const Value& a, const Value& b) {
  if (a.exact() && b.exact()) return a.top() == b.top() && a.bottom() == b.bottom();
  const long double x = a.approximate(), y = b.approximate();
  return std::fabs(x - y) <= kRounding * std::max(std::fabs(x), std::fabs(y));
}

bool less(const Value& a, const Value& b) {
  if (equal(a, b)) return false;
  const Value difference = a - b;
  return difference.exact() ? difference.top() < 0 : difference.approximate() < 0;
}

Value square_root(const Value& a) {
  if (a.approximate() < 0) throw std::domain_error("the root of a negative number");
  Wide top, bottom;
  if (a.exact() && whole_root(a.top(), top) && whole_root(a.bottom(), bottom)) {
    return Value::fraction(top, bottom);
  }
  return Value::real(std::sqrt(a.approximate()));
}

Value logarithm(const Value& a, int base) {
  if (a.approximate() <= 0) throw std::domain_error("the logarithm of zero or less");
  const auto whole = [base](Wide of) {
    int k = 0;
    for (; of % base == 0; of /= base) ++k;
    return of == 1 ? k : -1;
  };
  if (a.exact() && (a.top() == 1 || a.bottom() == 1)) {
    const int k = whole(a.bottom() == 1 ? a.top() : a.bottom());
    if (k >= 0) return a.bottom() == 1 ? k : -k;
  }
  return Value::real(std::log(a.approximate()) / std::log(static_cast<long double>(base)));
}

Value power(const Value& a, const Value& b) {
  constexpr int kLargest = 256;
  if (!b.whole() || b.top() > kLargest || b.top() < -kLargest) {
    return Value::real(std::pow(a.approximate(), b.approximate()));
  }
  Value out = 1;
  for (Wide i = b.top() < 0 ? -b.top() : b.top(); i > 0; --i) out = out * a;
  return b.top() < 0 ? Value(1) / out : out;
}

std::string to_string(const Value& value) {
  constexpr Wide kLongTop = 1'000'000'000, kLongBottom = 10'000;
  if (value.exact() && value.top() < kLongTop && value.top() > -kLongTop) {
    const auto top = std::to_string(static_cast<long long>(value.top()));
    if (value.bottom() == 1) return top;
    if (value.bottom() < kLongBottom && value.top() < kLongBottom) {
      return top + "/" + std::to_string(static_cast<long long>(value.bottom()));
    }
  }
  char text[64];
  std::snprintf(text, sizeof(text), "%.6Lg", value.approximate());
  return text;
}

}  // namespace rankine::expressions
