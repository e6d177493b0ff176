// This machine as the alpha-beta model sees it.
#pragma once

#include "engine/base/status.h"
#include "engine/network/fabric.h"

namespace rankine {

// What one hop and one addition cost here: T = hops alpha + moved beta + added gamma.
struct CostModel {
  double alpha = 0;  // seconds
  double beta = 0;   // seconds per byte that goes from core to core
  double gamma = 0;  // seconds per byte that is added
};

// The same as a network: a rank is a thread, which receives one message after the other (one port),
// and everybody reaches everybody. Times are whole attoseconds, so that they have a common unit.
// Errors: an alpha or a beta that is not above 0, a gamma below it, which a fit to noise can give,
// and any above kMostSeconds.
Result<Fabric> machine_fabric(const CostModel& model);
inline constexpr double kMostSeconds = 1;

}  // namespace rankine
