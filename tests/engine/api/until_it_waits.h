// For tests that need a rank to be inside a call, and waiting, before they go on.
#pragma once

#include "engine/api/communicator.h"

namespace rankine {

// Returns when rank r waits inside a call, as its record says.
void until_it_waits(const Communicator& communicator, Rank r);

}  // namespace rankine
