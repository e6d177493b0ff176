// One schedule on threads of its own, with real data, under a clock.
#pragma once

#include <memory>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/network/throttle.h"
#include "engine/network/ticks.h"

namespace rankine {

struct ClockedRun {
  // What compiling and the clock refuse, why the run ended, or wrong data (remote_error).
  Status status;
  std::unique_ptr<Throttle> clock;
};

// ok() only where every element of every output is right. Blocks have a few elements each, whatever
// `pricing` charges for them.
ClockedRun run_clocked(const Schedule& schedule, const Goal& goal, const Fabric& fabric,
                       const Pricing& pricing, ThrottleOptions options);

}  // namespace rankine
