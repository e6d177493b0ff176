// A schedule on threads with real data under the virtual clock.
#pragma once

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/network/port_model.h"
#include "engine/network/ticks.h"

namespace rankine::claims {

// When the last message ended. The clock's sizes are those of `pricing`; the data themselves are a
// few elements per block, and every one of them is checked. Errors: what compiling and the clock
// refuse; wrong data (remote_error).
Result<Ticks> execute(const Schedule& schedule, const Goal& goal, const Fabric& fabric,
                      const Pricing& pricing, Sync sync);

}  // namespace rankine::claims
