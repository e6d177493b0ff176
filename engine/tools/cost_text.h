// Costs (engine/base/costs.h) as people read them.
#pragma once

#include <cstddef>
#include <string>

#include "engine/base/costs.h"

namespace rankine::tools {

// "4 KiB", "256 ranks": bytes as sizes, all else with its unit.
std::string value_text(const CostField& field, std::size_t value);

// "board_pair_read 8 KiB (16 KiB), spin 1000 nanoseconds (50000 nanoseconds)": where they differ from
// the defaults, which stand behind. Empty: nowhere.
std::string differences_text(const Costs& costs);

}  // namespace rankine::tools
