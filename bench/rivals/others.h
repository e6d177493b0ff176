// Two more ways in use today to sum vectors over the threads of one machine, each written from
// its description, and two yardsticks. All of them know all_reduce only.
#pragma once

#include <memory>

#include "bench/rivals/rival.h"

namespace rankine::rivals {

// What a reader of a C++20 book writes: std::barrier before and after, each thread sums its slice
// into every output.
std::unique_ptr<Rival> make_std_barrier(const Setup& setup);

// The same between barriers of GCC's OpenMP runtime, inside one parallel region.
std::unique_ptr<Rival> make_openmp(const Setup& setup);

// The sum goes up the ranks and the result down again, by futex alone: 2 (N - 1) hand-offs between
// threads that sleep. Only where ranks share cores, up to 4 KiB.
std::unique_ptr<Rival> make_futex_chain(const Setup& setup);

// Each rank stores a line of its own and spins until it sees those of all others; nothing is summed
// and nothing moved. What is left of a small call when all data are thought away: under the
// protocol `fresh` ranks leave the barrier up to a latency apart, and then one line is the least
// that they can hear from each other. Only where each rank has a core, up to 1 KiB.
std::unique_ptr<Rival> make_flag_exchange(const Setup& setup);

}  // namespace rankine::rivals
