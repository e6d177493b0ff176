// Which cases a claim is tried on, as text: assignments to letters and lists of values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "algorithms/formula.h"

namespace rankine::formulas {

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

}  // namespace rankine::formulas

// In words, when something holds: found from cases by trying what could tell them apart.

namespace rankine::claims {

using formulas::Letters;
using formulas::Value;

// `holds` has an entry per set. The shortest of: "N is a power of two", "P = 1", "N >= 8", two of
// them with "and" or "or"; where none of these separates the cases, a list of those that hold.
// Precondition: some hold and some do not.
std::string condition_of(const std::vector<std::string>& order, const std::vector<Letters>& sets,
                         const std::vector<bool>& holds);

// "N = 4, M = 1000000".
std::string describe(const std::vector<std::string>& order, const Letters& letters);

}  // namespace rankine::claims
