// What every rank holds after every round, for a player: transfers as JSON, contributions as
// numbers.
#pragma once

#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/tools/parameters_json.h"

namespace rankine::tools {

inline constexpr std::size_t kMostStateNumbers = std::size_t{1} << 22;

// Adds to `out` ranks, blocks, planes, phases (name, rounds), `words` and `transfers`: per round,
// in the order stated, {from, to, what, act} and, on scratch vectors, planes {what_plane,
// where_plane}. Gives rounds + 1 states, the first before the first round; each has for every rank
// and place (plane * blocks + block) 1 + words numbers: the flags, and who has contributed, 32
// ranks to a number, the lowest bit for the lowest rank. Flags: 1 complete, 2 needed here, 4
// written in this round, 8 some rank is in it twice. Errors: more than kMostStateNumbers of them.
Result<std::vector<double>> states_of(const Schedule& schedule, const Goal& goal, Json& out);

}  // namespace rankine::tools
