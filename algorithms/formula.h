// evaluate() computes the value of a formula's text. A Value is exact as long as a fraction fits in
// 128 bits, and otherwise the nearest real number.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "algorithms/rational.h"

namespace rankine::formulas {

class Value {
 public:
  Value(long long whole = 0) : number_(Rational(whole)) {}  // NOLINT: a number is a value
  Value(Rational exact) : number_(exact) {}                 // NOLINT: a number is a value
  static Value real(long double value);

  bool exact() const { return std::holds_alternative<Rational>(number_); }
  const Rational& rational() const { return std::get<Rational>(number_); }  // only if exact
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

// Compares exactly if both are exact, or to within kRounding of the larger one.
inline constexpr long double kRounding = 1e-12L;
bool equal(const Value& a, const Value& b);
bool less(const Value& a, const Value& b);  // and not equal

Value square_root(const Value& a);          // a negative number throws std::domain_error
Value logarithm(const Value& a, int base);  // zero or less throws std::domain_error
Value power(const Value& a, const Value& b);
// The logarithm of a number of 1 or more, rounded up or down to a whole number; 0 below 1.
// Logarithms of fractions round as those of the next whole number do, and these are exact.
Value whole_logarithm(const Value& a, int base, bool up);

// "14", "7/4", "0.28": short exact numbers as they are, others with six significant digits.
std::string to_string(const Value& value);

// The language of the catalogue's closed forms and of the papers' claims:
//
//   expression  + - * / ( ), numbers as in "14", "1.5", "5e-6" (all exact), names with _ and .
//   comparison  a = b   a != b   a >= b   a <= b   a > b   a < b   1 if it holds, else 0
//   choice      if(c,a,b) min(a,b) max(a,b)   and(a,b) or(a,b) of zeros and others
//   rounding    floor(a) ceil(a) abs(a) mod(a,b)   divides(a,b) 1 if b is a multiple of a
//   powers      pow(a,b) sqrt(a) log2(a) log3(a), exact if they are whole, else real numbers
//               flog2(a) clog2(a) flog3(a) clog3(a) logarithms rounded down and up; 0 below 1
//               flog(b,a) clog(b,a) these to base b
//               pow2(a) pow3(a) 1 for a power of two, of three
//   digits      ones(a) the number of ones in the binary numbers 0 ... a - 1 together
//   sums        sum(k,a,b,e) of e over k = a ... b
//               each(e) times(e) most(e) next(e) over the sizes a of the scope: the sum of e, the
//               product, the maximum, and the largest but one; all terms must be >= 0
//
// The caller defines letters and further functions.

// The value of a letter (no arguments) or of a function; nullopt if it is unknown.
using Lookup =
    std::function<std::optional<Value>(std::string_view name, std::span<const Value> arguments)>;
using Letters = std::map<std::string, Value, std::less<>>;

// A text that cannot be parsed is a bug in a table: throws std::logic_error with the text and the
// place; so does a sum with unreasonably many terms. Undefined arithmetic throws std::domain_error.
// each() and most() go over `sizes`.
Value evaluate(std::string_view text, const Lookup& lookup, std::span<const int> sizes = {});
Value evaluate(std::string_view text, const Letters& letters);

}  // namespace rankine::formulas
