// The CPUs on which threads may run, as plain numbers.
#pragma once

#include <vector>

namespace rankine {

// CPU numbers of a thread's affinity mask (which a cpuset has already narrowed), rising. 0: the
// calling thread's; a process id: its main thread's. Empty when the kernel refuses to tell. A
// thread inherits its creator's mask, so ask before pinning anything.
std::vector<int> allowed_cpus(int thread = 0);

// The calling thread's, as they were before pin_calling_thread() (pin.h) pinned it; the same as
// allowed_cpus() for a thread that is not pinned, or that something else has moved since.
std::vector<int> cpus_before_pin();
// For pin_calling_thread(): this thread now has `cpu` alone, and had these before.
void remember_pin(int cpu, std::vector<int> before) noexcept;

// 0 where the kernel tells, else the errno with which it refuses. Does not allocate.
int affinity_error() noexcept;

// Restricts the calling thread to `cpus` (numbers in 0..kMaxCpus-1, others are ignored). Returns 0
// or the errno; on error the thread's mask is unchanged. Does not allocate.
int set_allowed_cpus(const int* cpus, int count) noexcept;

}  // namespace rankine
