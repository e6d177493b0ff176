// Answers the page's requests about curves, edited schedules, contents of ranks, plans, buckets,
// schedules and formulas.
#pragma once

#include <string_view>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/cli/text.h"
#include "engine/lab/planner/pipeline.h"

namespace rankine::tools {

// Reads a member that is a whole number from `lowest` to `highest`; without it, `into` stays.
Status read_number(const Json& request, std::string_view member, int lowest, int highest,
                   int& into);

// Answers `curve` (answers.h): times over sizes or ranks, for charts. Errors name the member, its
// value and the allowed values.
Status ask_curve(const Json& request, Json& out, std::vector<double>& numbers);

// edited() repeats a visitor's changes to a schedule, for what-if questions to the verifier.

inline constexpr std::size_t kMostEditedTransfers = 1 << 17;

// The schedule after `edits`, a list of objects that are applied in turn. `round` and `transfer`
// count from 0, in the schedule after the earlier edits.
//
//   {"do": "delete", "round": 2, "transfer": 5}
//   {"do": "redirect", ..., "to": 3}             to another rank
//   {"do": "double", ...}                        repeats the transfer directly after it
//   {"do": "move", ..., "into": 4}               to the end of another round
//   {"do": "chance", "seed": 7}                  one random edit of the above
//
// `done` gets the edits; a random edit as the edit that was drawn. Phases stay. Errors name the
// member, its value and the allowed values.
Result<Schedule> edited(const Schedule& schedule, const Json& edits, Json& done);

// states_of() lists the contents of every rank after every round, for a player.

inline constexpr std::size_t kMostStateNumbers = std::size_t{1} << 22;

// Adds to `out` ranks, blocks, planes, phases (name, rounds), `words` and `transfers`: per round,
// in the schedule's order, {from, to, what, act} and, on scratch vectors, planes {what_plane,
// where_plane}. Returns rounds + 1 states as numbers, the first before the first round. Each state
// has 1 + words numbers for every rank and place (plane * blocks + block): the flags, then the
// contributing ranks, 32 ranks per number, lowest bit for the lowest rank. Flags: 1 complete, 2
// needed here, 4 written in this round, 8 some rank is in it twice. Errors: more than
// kMostStateNumbers numbers.
Result<std::vector<double>> states_of(const Schedule& schedule, const CollectiveSpec& goal,
                                      Json& out);

// Answers `plan` (answers.h) with rankine plan's answer. The request may have `model` and `machine`
// (names), an axis (tp, sp, ep, dp, pp), micro_batch, micro_batches, interleave, zero (numbers),
// order and recompute (names) and split_norms. `out` gets plan_json(), the lists of `models` and
// `machines`, and in `stages` the memory of a rank of each stage; `numbers` gets the pipeline's
// passes as rows of `columns`. Errors name the member, its value and the allowed values.
Status ask_plan(const Json& request, Json& out, std::vector<double>& numbers);

// Writes passes as rows of numbers; `out` gets the names of their `columns`.
void write_passes(const Pipeline& pipeline, Json& out, std::vector<double>& numbers);

// Answers `buckets` (answers.h). `question` is a request about an all_reduce of one tensor;
// `tensors` is their number (default 64); `backward` is the time of the pass that makes them (a
// text; default none). `out` gets `rows` as rankine buckets --json has them, the index `best`, and
// `calls`, the best number of calls by a closed form, if there is one.
Status ask_buckets(const Json& request, Json& out, std::vector<double>& numbers);

// ask_check() and ask_formula() judge a visitor's schedules and formulas as rankine check does.

// Adds to `out` the output of rankine check --json for `text`: a written schedule, at 1 MiB on the
// plain network, or a pipeline's order; `numbers` gets the order's passes. Errors: errors of
// read_schedule(), judge() and read_order(), and a missing text.
Status ask_check(const Json& request, Json& out, std::vector<double>& numbers);

// Without `formula`: adds `tasks`, each with its question and letters. With it: adds the output of
// rankine check --json for `formula` and `task` at the inputs of `seed` (default 1).
Status ask_formula(const Json& request, Json& out, std::vector<double>& numbers);

}  // namespace rankine::tools
