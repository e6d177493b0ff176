// The machine that this program runs on, measured: what `--machine here` means.
#pragma once

#include "engine/base/status.h"
#include "engine/tools/plan/machine.h"

namespace rankine::tools {

inline constexpr std::string_view kHere = "here";

// A rank is a thread with a core of its own. Products are those of `rankine train`
// (train/matrix.h), on two cores at once; so is the copying through memory. The network is the fit
// of a hop and of an addition between these two (cost_fit.h), and nothing between nodes. Takes
// about two seconds, less once a signal has interrupted it. Errors: those of a Team's calls, and of
// a fit to noise.
Result<Machine> measure_machine();

}  // namespace rankine::tools
