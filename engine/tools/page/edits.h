// A schedule that somebody changed by hand: for what-if questions to the verifier.
#pragma once

#include <vector>

#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/tools/parameters_json.h"

namespace rankine::tools {

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

}  // namespace rankine::tools
