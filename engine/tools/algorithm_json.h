// A line of the catalogue as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "algorithms/catalogue.h"

namespace rankine::tools {

// Numbers that formulas know; lists are different for every algorithm.
inline bool in_formulas(const Parameter& row) {
  return row.number != nullptr && !row.letter.empty();
}

// All of its members, formulas as they are written there.
nlohmann::ordered_json algorithm_json(const Algorithm& line);
// The same, and in its member `at` what the formulas come to, or why there is no such schedule.
// `params` as resolved() gives them; what the line does not take makes no difference.
nlohmann::ordered_json algorithm_json(const Algorithm& line, const Params& params);

}  // namespace rankine::tools
