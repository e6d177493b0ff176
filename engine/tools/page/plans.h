// What a training step costs, for the planner on the page: rankine plan's own answer.
#pragma once

#include <vector>

#include "engine/base/status.h"
#include "engine/tools/parameters_json.h"

namespace rankine::tools {

// What answers.h calls `plan`. The request may have `model` and `machine` (names), an axis (tp, sp,
// ep, dp, pp), micro_batch, micro_batches, interleave, zero (numbers), order and recompute (names)
// and split_norms. `out` gets plan_json() and the lists of `models` and `machines`;
// `numbers` the pipeline's passes, as rows of `columns`. Errors name the member, its value and what
// is allowed.
Status ask_plan(const Json& request, Json& out, std::vector<double>& numbers);

}  // namespace rankine::tools
