// Parameter sets of a claim, read from text, and the shortest condition that separates the sets in
// which the claim holds from the others.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "algorithms/formula.h"

namespace rankine::formulas {

// Reads "N=2..5,16; P=1,N; M=1000*N" as sets of assignments; the last letter varies fastest. An
// expression may use the letters to its left. `order` keeps the order of the letters. Throws
// std::logic_error.
struct ParameterSets {
  std::vector<std::string> order;
  std::vector<Letters> sets;
};
ParameterSets parameter_sets(std::string_view text);

// Splits text at separators outside of parentheses, and trims the parts. An empty text has no part.
std::vector<std::string_view> split_outside(std::string_view text, char separator);
std::string_view trimmed(std::string_view text);

}  // namespace rankine::formulas

// Conditions in words, found by trying simple tests on the sets.

namespace rankine::claims {

using formulas::Letters;
using formulas::Value;

// `holds` has one entry per set. Returns the shortest of: one test ("N is a power of two", "P = 1",
// "N >= 8"), two tests with "and" or "or", or a list of the sets that hold. Precondition: `holds`
// has both true and false.
std::string condition_of(const std::vector<std::string>& order, const std::vector<Letters>& sets,
                         const std::vector<bool>& holds);

// "N = 4, M = 1000000".
std::string describe(const std::vector<std::string>& order, const Letters& letters);

}  // namespace rankine::claims
