// How far a modelled network's time must be stretched for a machine to keep it in real time.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/run/wait_policy.h"

namespace rankine {

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

// "500", "1.5": a dilation; "auto": 0, what the machine needs.
Result<double> parse_dilation(std::string_view argument, std::string_view text);

// For calls that nobody knows yet, of so many ranks on `cpus` hardware threads, each waiting like
// that: a message of no bytes takes several wake-ups of all ranks, one after the other where cores
// are few, and a long one several times what moving its bytes takes them. Measured by the calling
// thread, in a few milliseconds. `fabric` as wired_for() gives it.
double machine_dilation(const Fabric& fabric, int ranks, int cpus, const WaitPolicy& policy);

}  // namespace rankine
