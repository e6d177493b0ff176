// How far a modelled network's time must be stretched for a machine to keep it in real time.
#pragma once

#include <string>

namespace rankine::tools {

// What decides whether a wall clock can be honoured. Seconds; model times are not dilated.
struct WallDemands {
  double total = 0;       // of the model
  double least = 0;       // the model's cheapest message
  double resolution = 0;  // how late the machine wakes a thread, nine times out of ten
  double data = 0;        // what the same call takes on these threads without a clock
};

// The dilation with which measured times come close to the model's: a late wake-up at the end is 2
// % of the whole, the cheapest message takes several wake-ups, moving the data a sixteenth of the
// time, and all of it long enough that other programs' turns on the cores do not decide. Two
// digits, rounded up; at least 1.
double fitting_dilation(const WallDemands& demands);

// Why this dilation cannot be honoured, with one that can; empty where it can: messages that are
// shorter than the machine's wake-ups, or data that take longer to move than the model allows.
std::string dilation_refusal(const WallDemands& demands, double dilate);

}  // namespace rankine::tools
