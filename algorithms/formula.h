// Formulas as text: the one language of the catalogue's closed forms and of the papers' claims.
//
//   expression  + - * / ( ), numbers as in "14", "1.5", "5e-6" (all exact), names with _ and .
//   comparison  a = b   a != b   a >= b   a <= b   a > b   a < b   1 where it holds, else 0
//   choice      if(c,a,b) min(a,b) max(a,b)   and(a,b) or(a,b) of zeros and others
//   rounding    floor(a) ceil(a) abs(a) mod(a,b)   divides(a,b) 1 if b is a multiple of a
//   powers      pow(a,b) sqrt(a) log2(a) log3(a), exact where they are whole, else real numbers
//               flog2(a) clog2(a) flog3(a) clog3(a) logarithms rounded down and up; 0 below 1
//               flog(b,a) clog(b,a) the same to base b
//               pow2(a) pow3(a) 1 for a power of two, of three
//   digits      ones(a) how many ones the binary numbers 0 ... a - 1 have together
//   sums        sum(k,a,b,e) of e over k = a ... b
//               each(e) times(e) most(e) next(e) over the sizes a of the scope the sum of e, the
//               product, the maximum, and the largest but one; none is negative
//
// Letters, and functions beyond these, are what the caller knows.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "algorithms/value.h"

namespace rankine::formulas {

// The value of a letter (no arguments) or of a function; nullopt where there is none.
using Lookup =
    std::function<std::optional<Value>(std::string_view name, std::span<const Value> arguments)>;
using Letters = std::map<std::string, Value, std::less<>>;

// A text that cannot be read is a mistake in our own tables: throws std::logic_error that shows the
// text and the place; so does one that sums up too many terms to be meant. What the arithmetic has
// no value for throws std::domain_error. `sizes` are what each() and most() go over.
Value evaluate(std::string_view text, const Lookup& lookup, std::span<const int> sizes = {});
Value evaluate(std::string_view text, const Letters& letters);

}  // namespace rankine::formulas
