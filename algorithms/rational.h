// Rational is an exact number: a fraction of 128-bit integers. 128 bits hold every double that
// people write as a time (17 digits at 1e-12 need 94) beside every bandwidth's reciprocal.
#pragma once

#include <cstdint>
#include <string>

namespace rankine {

__extension__ using Int128 = __int128;

// In lowest terms with a positive denominator. A denominator of 0 throws std::domain_error, a
// result beyond 128 bits std::overflow_error: parsers and pricing turn that into a Status.
class Rational {
 public:
  constexpr Rational(std::int64_t whole = 0) : top_(whole) {}  // NOLINT: a number is a fraction
  Rational(Int128 top, Int128 bottom);

  Int128 top() const { return top_; }
  Int128 bottom() const { return bottom_; }
  bool whole() const { return bottom_ == 1; }
  bool operator==(const Rational&) const = default;
  Rational operator+(Rational b) const;
  Rational operator-(Rational b) const { return *this + b * Rational(-1); }
  Rational operator*(Rational b) const;
  Rational operator/(Rational b) const;
  bool operator<(Rational b) const;
  Rational floor() const;
  double to_double() const;       // rounded once, to nearest
  std::string to_string() const;  // "3/2"

 private:
  Int128 top_, bottom_ = 1;
};

// top / bottom rounded once, to the nearest double (ties to even). Neither is negative and bottom
// is not 0; quotients below the normal doubles lose digits.
double nearest_double(Int128 top, Int128 bottom);

// "-12345"
std::string to_text(Int128 value);

}  // namespace rankine
