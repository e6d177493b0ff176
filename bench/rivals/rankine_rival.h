// Rankine itself as a contender, with everything left to the engine's choice.
#pragma once

#include <memory>

#include "bench/rivals/rival.h"

namespace rankine::rivals {

// A communicator that the driver's own pinned threads have joined.
std::unique_ptr<Rival> make_rankine(const Setup& setup);

// Each rank is a process with a communicator of its own, on buffers of any kind.
std::unique_ptr<Rival> make_rankine_processes(const Setup& setup);

// The same on memory of Member::allocate, which the calls say: nothing is copied on its way.
std::unique_ptr<Rival> make_rankine_shared(const Setup& setup);

}  // namespace rankine::rivals
