// Rankine itself as a contender: a communicator that the driver's own pinned threads have joined,
// with everything left to the engine's choice.
#pragma once

#include <memory>

#include "bench/rivals/rival.h"

namespace rankine::rivals {

std::unique_ptr<Rival> make_rankine(const Setup& setup);

}  // namespace rankine::rivals
