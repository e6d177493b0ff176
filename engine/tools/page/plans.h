// What a training step costs, for the planner on the page: rankine plan's own answer.
#pragma once

#include <vector>

#include "engine/base/status.h"
#include "engine/tools/parameters_json.h"
#include "engine/tools/plan/pipeline.h"

namespace rankine::tools {

// What answers.h calls `plan`. The request may have `model` and `machine` (names), an axis (tp, sp,
// ep, dp, pp), micro_batch, micro_batches, interleave, zero (numbers), order and recompute (names)
// and split_norms. `out` gets plan_json() and the lists of `models` and `machines`;
// `numbers` the pipeline's passes, as rows of `columns`; `stages` has what a rank of each stage
// keeps in memory. Errors name the member, its value and what
// is allowed.
Status ask_plan(const Json& request, Json& out, std::vector<double>& numbers);

// Passes as rows of numbers, whose `columns` are told in `out`.
void write_passes(const Pipeline& pipeline, Json& out, std::vector<double>& numbers);

// What answers.h calls `buckets`: the `question` is that of an all_reduce of one tensor; there are
// `tensors` of them (64), made by a pass of so many seconds as `backward` says (a text; none).
// `out` gets `rows` as rankine buckets --json has them, which of them is `best`, and `calls`, the
// best number of calls by a closed form, where there is one.
Status ask_buckets(const Json& request, Json& out, std::vector<double>& numbers);

}  // namespace rankine::tools
