// Numbers of formulas: exact fractions as long as 128 bits hold them, otherwise the nearest real
// number. Roots and logarithms are exact where they are whole.
#pragma once

#include <string>

namespace rankine::expressions {

__extension__ using Wide = __int128;

class Value {
 public:
  Value(long long whole = 0) : top_(whole) {}    // NOLINT: a number is a value
  static Value fraction(Wide top, Wide bottom);  // a bottom of 0 throws std::domain_error
  static Value real(long double value);

  bool exact() const { return exact_; }
  Wide top() const { return top_; }        // where exact; in lowest terms, the bottom positive
  Wide bottom() const { return bottom_; }  // likewise
  bool whole() const;                      // exact and a whole number
  long double approximate() const;

  Value operator+(const Value& b) const;
  Value operator-(const Value& b) const;
  Value operator*(const Value& b) const;
  Value operator/(const Value& b) const;
  Value floor() const;
  Value ceil() const { return Value() - (Value() - *this).floor(); }

 private:
  bool exact_ = true;
  Wide top_ = 0, bottom_ = 1;
  long double real_ = 0;
};

// Where both are exact, exactly; else to within kRounding of the larger one.
inline constexpr long double kRounding = 1e-12L;
bool equal(const Value& a, const Value& b);
bool less(const Value& a, const Value& b);  // and not equal

Value square_root(const Value& a);          // of a negative number: throws std::domain_error
Value logarithm(const Value& a, int base);  // of zero or less: throws std::domain_error
Value power(const Value& a, const Value& b);

// "14", "7/4", "0.28": what is exact and short as it is, the rest with six significant digits.
std::string to_string(const Value& value);

}  // namespace rankine::expressions
