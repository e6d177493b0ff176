// This header defines loops on all cores, for proofs, simulations and claims, and threads that play
// ranks. Collectives never run in such a loop: ranks wait for each other, and a loop may run its
// calls one after the other.
#pragma once

#include <cstddef>
#include <functional>

namespace rankine {

// The number of CPUs that this process may use, at least 1.
int usable_cores() noexcept;

// Calls body(0) to body(count - 1), each once, in the caller's thread and in helping threads; they
// begin in this order. `most_threads`: at most as many as there are usable cores; 0: all. All loops
// of the process together have as many threads as usable cores: a loop inside a loop takes a core
// once it is idle. After an exception no further call begins, and the first exception leaves the
// loop.
void parallel_for(std::size_t count, const std::function<void(std::size_t)>& body,
                  int most_threads = 0);

// Calls body(0) to body(count - 1) at once, each on its own thread, and meanwhile `director` on the
// calling thread. Returns when all have returned.
void on_threads(int count, const std::function<void(int)>& body,
                const std::function<void()>& director = {});

}  // namespace rankine
