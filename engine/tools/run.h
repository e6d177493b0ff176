// rankine run: a collective with real data on pinned threads under a clock of the model, predicted
// beside measured.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/exec/throttle.h"
#include "engine/tools/arguments.h"
#include "engine/tools/console.h"

namespace rankine::tools {

Subcommand add_run(CLI::App& tool);

// What decides whether a wall clock can be honoured. Seconds; model times are not dilated.
struct WallDemands {
  double total = 0;       // of the model
  double least = 0;       // the model's cheapest message
  double resolution = 0;  // how late the machine wakes a thread, nine times out of ten
  double data = 0;        // what the same call takes on these threads without a clock
};

// The dilation with which measured times come close to the model's: a late wake-up at the end is 2 %
// of the whole, the cheapest message takes several wake-ups, and moving the data fits into a tenth of
// the time. Two digits, rounded up; at least 1.
double fitting_dilation(const WallDemands& demands);

// Why this dilation cannot be honoured, with one that can; empty where it can: messages that are
// shorter than the machine's wake-ups, or data that take longer to move than the model allows.
std::string dilation_refusal(const WallDemands& demands, double dilate);

}  // namespace rankine::tools
