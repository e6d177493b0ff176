// Rows of the tuning table as its file has them, for reports that show the same.
#pragma once

#include <nlohmann/json.hpp>

#include "engine/api/tuning/tuning.h"

namespace rankine {

nlohmann::ordered_json to_json(const MeasuredCReal& measured);

}  // namespace rankine
