// What this process says of itself where it meets those whose ranks will be of one communicator
// with its own.
#pragma once

#include "engine/api/communicator.h"
#include "engine/api/environment.h"
#include "engine/api/processes/settings.h"
#include "engine/base/costs.h"

namespace rankine {

// Errors: a machine that does not say which it is. Throws std::bad_alloc.
Result<ProcessSettings> process_settings(const CommunicatorOptions& options,
                                         const Environment& environment, const Costs& costs);

}  // namespace rankine
