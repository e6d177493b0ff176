// Times over sizes or ranks, for charts.
#pragma once

#include <vector>

#include "engine/base/status.h"
#include "engine/tools/parameters_json.h"

namespace rankine::tools {

// What answers.h calls `curve`. Errors name the member, its value and what is allowed.
Status ask_curve(const Json& request, Json& out, std::vector<double>& numbers);

}  // namespace rankine::tools
