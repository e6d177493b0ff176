// A line of the catalogue, called by the ranks of a communicator that is on a modelled network. All
// of them take turns on the calling thread (turns.h).
#pragma once

#include <cstdint>

#include "algorithms/catalogue.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/network/timing.h"

namespace rankine::claims {

// When the last message ended, in the model's seconds, where blocks have exactly M / B of so many
// bytes. The data themselves are a cache line per block, every byte of which stands for as many as
// there would be; all of them are checked. Errors: the communicator's; wrong data (remote_error);
// ranks of which none can go on (aborted).
// `lower`: what the network cannot do with one transfer is many messages.
Result<double> execute(const Algorithm& algorithm, const Params& params, const Fabric& fabric,
                       std::uint64_t bytes, Sync sync, bool lower);

}  // namespace rankine::claims
