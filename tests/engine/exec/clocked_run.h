// One schedule on threads of its own, with real data, under a clock.
#pragma once

#include <memory>
#include <string>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/exec/throttle.h"
#include "engine/fabric/fabric.h"
#include "engine/fabric/ticks.h"

namespace rankine::testing {

struct ClockedRun {
  std::string failure;  // empty: it ran, and every element of every output is right
  std::unique_ptr<Throttle> clock;
};

// Blocks have a few elements each, whatever `pricing` charges for them.
ClockedRun run_clocked(const Schedule& schedule, const Goal& goal, const Fabric& fabric,
                       const Pricing& pricing, ThrottleOptions options);

}  // namespace rankine::testing
