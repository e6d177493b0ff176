// What the page judges: schedules and formulas that a visitor writes, as rankine check does.
#pragma once

#include <vector>

#include "engine/base/status.h"
#include "engine/tools/parameters_json.h"

namespace rankine::tools {

// Adds to `out` what rankine check --json says of `text`, a written schedule, at 1 MiB on the plain
// network. Errors: those of read_schedule() and judge(), and a
// missing text.
Status ask_check(const Json& request, Json& out, std::vector<double>& numbers);

// Without `formula`: `tasks`, each with its question and letters. Else what rankine check --json
// says of the `formula` for the `task` at the inputs of the `seed` (1).
Status ask_formula(const Json& request, Json& out, std::vector<double>& numbers);

}  // namespace rankine::tools
