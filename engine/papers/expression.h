// The papers' formulas as text. A larger relative of algorithms/formula.h: letters are whatever the
// caller knows, numbers may be real, and what is exact stays exact (value.h).
//
//   expression  + - * / ( ), numbers as in "14", "1.5", "5e-6" (all exact), names with _ and .
//   comparison  a = b   a != b   a >= b   a <= b   a > b   a < b   1 where it holds, else 0
//   functions   min(a,b) max(a,b) if(c,a,b) and(a,b) or(a,b) abs(a) floor(a) ceil(a) mod(a,b)
//               sqrt(a) pow(a,b) log2(a) log3(a) as real numbers; clog2(a) clog3(a) flog2(a)
//               flog3(a) rounded up and down; pow2(a) pow3(a) 1 for a power of two, of three
//               divides(a,b) 1 if b is a multiple of a
//               sum(k,a,b,e) of e over k = a ... b
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/papers/value.h"

namespace rankine::expressions {

using Letters = std::map<std::string, Value, std::less<>>;
// The value of a name, or nullopt where there is none.
using Lookup = std::function<std::optional<Value>(std::string_view name)>;

// A text that cannot be read is a mistake in our own tables: throws std::logic_error that shows the
// text and the place; so does one that sums up too many terms to be meant. What the arithmetic has
// no value for throws std::domain_error.
Value evaluate(std::string_view text, const Lookup& lookup);
Value evaluate(std::string_view text, const Letters& letters);

// "N=2..5,16; P=1,N; M=1000*N" as the assignments that it stands for, the last letter fastest. What
// stands right may use letters that stand left of it. Written order is kept in `order`.
struct ParameterSets {
  std::vector<std::string> order;
  std::vector<Letters> sets;
};
ParameterSets parameter_sets(std::string_view text);

// Parts between separators that stand outside of parentheses, without the spaces around them. ""
// has no part.
std::vector<std::string_view> split_outside(std::string_view text, char separator);
std::string_view trimmed(std::string_view text);

}  // namespace rankine::expressions
