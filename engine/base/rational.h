// An exact number, as a fraction of 128-bit integers: what times and bandwidths are until they
// become ticks. 128 bits hold every double that people write as a time (17 digits at 1e-12 need 94)
// beside every bandwidth's reciprocal.
#pragma once

#include "algorithms/formula.h"

namespace rankine {

__extension__ using Int128 = __int128;

// In lowest terms with a positive denominator. Arithmetic that leaves 128 bits throws
// std::overflow_error: parsers and pricing turn that into a Status.
class Rational {
 public:
  constexpr Rational(std::int64_t whole = 0) : top_(whole) {}  // NOLINT: a number is a fraction
  Rational(Fraction fraction) : top_(fraction.top()), bottom_(fraction.bottom()) {}  // NOLINT
  Rational(Int128 top, Int128 bottom);

  Int128 top() const { return top_; }
  Int128 bottom() const { return bottom_; }
  bool operator==(const Rational&) const = default;
  Rational operator+(Rational b) const;
  Rational operator*(Rational b) const;
  Rational operator/(Rational b) const;  // b is not 0
  bool operator<(Rational b) const;
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
