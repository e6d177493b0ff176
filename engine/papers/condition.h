// In words, when something holds: found from cases by trying what could tell them apart.
#pragma once

#include <string>
#include <vector>

#include "algorithms/formula.h"

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
