// How to notice that one is in a forked child, for the price of a load: fork() copies the calling
// thread only, so ranks of the parent do not exist in the child and no wait for them would end.
#pragma once

#include <atomic>
#include <cstdint>

namespace rankine {

// Forks between the process that first called count_forks() and this one. Relaxed: a child reads
// what its own fork wrote, before any other thread of it exists.
extern std::atomic<std::uint32_t> fork_count;

// Starts counting (fork() and whatever runs pthread_atfork's handlers; not a bare clone system
// call). Returns fork_count. Any thread, any number of times.
std::uint32_t count_forks();

}  // namespace rankine
