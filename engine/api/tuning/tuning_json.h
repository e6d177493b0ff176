// to_json() writes rows of the tuning table as the table's file has them, for reports.
#pragma once

#include <nlohmann/json.hpp>

#include "engine/api/tuning/tuning.h"

namespace rankine {

nlohmann::ordered_json to_json(const MeasuredCReal& measured);

}  // namespace rankine
