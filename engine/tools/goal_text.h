// A schedule as GOAL, the input of LogGOPSim: per rank a list of sends, receives and local work,
// and what each waits for. Hoefler, Siebert & Lumsdaine, "Group Operation Assembly Language - A
// flexible way to express collective communication", ICPP 2009; "LogGOPSim - Simulating large-scale
// applications in the LogGOPS model", LSAP 2010.
#pragma once

#include <cstdint>
#include <string>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/network/simulate.h"

namespace rankine::tools {

// `bytes` is M, and of `options` counts and ideal blocks matter. A message is a send and a receive
// of its bytes with a tag of its own, so that no other is taken for it. A send waits for whatever
// brought what it carries; sums are local work of no time (calc 0), which waits for what is added
// up. Ports, latencies and bandwidths are the simulator's. Switches' transfers become messages,
// which are all that GOAL knows. Errors: more than `most_lines` sends, receives and sums; sizes
// that Pricing refuses.
Result<std::string> goal_text(const Schedule& schedule, const Goal& goal, std::uint64_t bytes,
                              const SimulateOptions& options = {},
                              std::int64_t most_lines = std::int64_t{1} << 24);

}  // namespace rankine::tools
