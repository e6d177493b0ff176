// Numbers of formulas: exact fractions as long as 128 bits hold them, otherwise the nearest real
// number. Roots and logarithms are exact where they are whole.
#pragma once

#include <string>
#include <variant>

#include "algorithms/rational.h"

namespace rankine::formulas {

class Value {
 public:
  Value(long long whole = 0) : number_(Rational(whole)) {}  // NOLINT: a number is a value
  Value(Rational exact) : number_(exact) {}                 // NOLINT: likewise
  static Value real(long double value);

  bool exact() const { return std::holds_alternative<Rational>(number_); }
  const Rational& rational() const { return std::get<Rational>(number_); }  // where exact
  bool whole() const { return exact() && rational().whole(); }
  long double approximate() const;

  Value operator+(const Value& b) const;
  Value operator-(const Value& b) const { return *this + Value(-1) * b; }
  Value operator*(const Value& b) const;
  Value operator/(const Value& b) const;  // by 0: throws std::domain_error
  Value floor() const;
  Value ceil() const { return Value() - (Value() - *this).floor(); }

 private:
  std::variant<Rational, long double> number_;
};

// Where both are exact, exactly; else to within kRounding of the larger one.
inline constexpr long double kRounding = 1e-12L;
bool equal(const Value& a, const Value& b);
bool less(const Value& a, const Value& b);  // and not equal

Value square_root(const Value& a);          // of a negative number: throws std::domain_error
Value logarithm(const Value& a, int base);  // of zero or less: throws std::domain_error
Value power(const Value& a, const Value& b);
// Of what is 1 or more, rounded up or down to a whole number; 0 below. Logarithms of fractions
// round as those of the whole number next to them do, and these are exact.
Value whole_logarithm(const Value& a, int base, bool up);

// "14", "7/4", "0.28": what is exact and short as it is, the rest with six significant digits.
std::string to_string(const Value& value);

}  // namespace rankine::formulas
