// Times over sizes or ranks, for charts.
#pragma once

#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/cli/text.h"
#include "engine/lab/planner/pipeline.h"

namespace rankine::tools {

// What answers.h calls `curve`. Errors name the member, its value and what is allowed.
Status ask_curve(const Json& request, Json& out, std::vector<double>& numbers);

// A schedule that somebody changed by hand: for what-if questions to the verifier.

inline constexpr std::size_t kMostEditedTransfers = 1 << 17;

// The schedule after `edits`, a list of objects that are done one after the other. `round` and
// `transfer` count from 0, in the schedule as the edits before left it.
//
//   {"do": "delete", "round": 2, "transfer": 5}
//   {"do": "redirect", ..., "to": 3}             to another rank
//   {"do": "double", ...}                        the same once more, behind it
//   {"do": "move", ..., "into": 4}               to the end of another round
//   {"do": "chance", "seed": 7}                  one of these, drawn
//
// `done` gets the edits, drawn ones as what they came to. Phases stay. Errors name the member, its
// value and what is allowed.
Result<Schedule> edited(const Schedule& schedule, const Json& edits, Json& done);

// What every rank holds after every round, for a player: transfers as JSON, contributions as
// numbers.

inline constexpr std::size_t kMostStateNumbers = std::size_t{1} << 22;

// Adds to `out` ranks, blocks, planes, phases (name, rounds), `words` and `transfers`: per round,
// in the order stated, {from, to, what, act} and, on scratch vectors, planes {what_plane,
// where_plane}. Gives rounds + 1 states, the first before the first round; each has for every rank
// and place (plane * blocks + block) 1 + words numbers: the flags, and who has contributed, 32
// ranks to a number, the lowest bit for the lowest rank. Flags: 1 complete, 2 needed here, 4
// written in this round, 8 some rank is in it twice. Errors: more than kMostStateNumbers of them.
Result<std::vector<double>> states_of(const Schedule& schedule, const Goal& goal, Json& out);

// What a training step costs, for the planner on the page: rankine plan's own answer.

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

// What the page judges: schedules and formulas that a visitor writes, as rankine check does.

// Adds to `out` what rankine check --json says of `text`, a written schedule, at 1 MiB on the plain
// network. Errors: those of read_schedule() and judge(), and a
// missing text.
Status ask_check(const Json& request, Json& out, std::vector<double>& numbers);

// Without `formula`: `tasks`, each with its question and letters. Else what rankine check --json
// says of the `formula` for the `task` at the inputs of the `seed` (1).
Status ask_formula(const Json& request, Json& out, std::vector<double>& numbers);

}  // namespace rankine::tools
