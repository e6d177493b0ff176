// Closed forms as text: the catalogue states what a paper prints, and this file computes it.
//
//   expression  + - * / ( ), whole numbers, and the letters N P G A D S of Params (see catalogue.h)
//   comparison  a >= b   a > b   1 where it holds, else 0
//   functions   min(a,b) max(a,b) if(c,a,b) ceil(a) floor(a)   and(a,b) or(a,b) of zeros and others
//               log2(a) floor(log2 a), 0 below 1   clog2(a) ceil(log2 a), likewise   exp2(a) 2^a
//               pow2(a) 1 if a is a power of two   divides(a,b) 1 if b is a multiple of a
//               ones(a) how many ones the binary numbers 0 ... a - 1 have together
//               log3(a) clog3(a) exp3(a) the same to base 3   pow3(a) 1 if a is a power of three
//   dimensions  each(f) most(f): the sum and the maximum of f over the sizes a of a torus
//   and         Q the largest power of two up to N   H 1 where root and peer differ, else 0
//   groups      groups of G ranks, the last one as well that may have fewer: last of them
//   levels      L how many sizes of groups there are from 2 to N, with N itself
//   what Params leaves open: the default, as catalogue.h's resolved() gives it
//
// Exact: values are fractions of 64-bit integers. A text that cannot be read is a mistake in our
// own catalogue and throws std::logic_error that shows the text and the position; what leaves 64
// bits throws std::overflow_error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rankine {

struct Params;

// A fraction in lowest terms with a positive denominator. Arithmetic that leaves 64 bits throws
// std::overflow_error.
class Fraction {
 public:
  constexpr Fraction(std::int64_t whole = 0) : top_(whole) {}  // NOLINT: a number is a fraction
  Fraction(std::int64_t top, std::int64_t bottom);
  std::int64_t top() const { return top_; }
  std::int64_t bottom() const { return bottom_; }
  bool operator==(const Fraction&) const = default;
  Fraction operator+(Fraction b) const;
  Fraction operator-(Fraction b) const;
  Fraction operator*(Fraction b) const;
  Fraction operator/(Fraction b) const;
  bool operator<(Fraction b) const;
  std::int64_t floor() const;
  std::string to_string() const;  // "3/2"
  double to_double() const { return static_cast<double>(top_) / static_cast<double>(bottom_); }

 private:
  std::int64_t top_, bottom_ = 1;
};

Fraction evaluate(std::string_view formula, const Params& params);

}  // namespace rankine
