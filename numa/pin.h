// Pinning the calling thread, with a way out where the machine refuses.
#pragma once

#include <vector>

#include "numa/enforcement.h"
#include "numa/placement.h"
#include "numa/topology.h"

namespace rankine {

// Restricts the calling thread to CPU `cpu`; cpu < 0 means "do not pin" and leaves the mask alone.
// Where the kernel does not tell the mask (sched_getaffinity refused), nothing is pinned: that is a
// refusal. Refused (forbidden, absent, no permission): the thread is spread over `fallback`
// instead, or keeps the mask it has where that is empty or refused too; the result says why, and
// the first refusal of a process warns. Undone only by another call: the mask outlives the caller's
// interest and is inherited by new threads.
Enforcement pin_calling_thread(int cpu, const std::vector<int>& fallback = {}) noexcept;

// The same for a placed rank, with all the topology's CPUs as fallback. Where the topology does not
// describe this machine nothing is pinned, and that is reported as refused.
Enforcement pin_calling_thread(const Topology& topology, const RankPlace& place) noexcept;

// Moves the calling thread to that CPU, and leaves it free to run on all CPUs that it had: for
// threads that are not pinned, and should not begin on one CPU together. What the kernel refuses
// leaves the thread where it is.
void move_calling_thread(int cpu) noexcept;

}  // namespace rankine
