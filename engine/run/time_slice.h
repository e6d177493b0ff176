// How long others keep a core that a thread has given away.
//
// Where other work is on a core, Linux lets it run until its time slice ends and the timer ticks, 3
// to 4 ms, before whoever has yielded or been woken is looked at again: a call among eight ranks on
// two cores took 4 ms beside one busy program, instead of 14 us. A thread with a short slice goes
// on at once while it has had less than its share of the core, which remains what it was. Any
// thread may ask for it, from Linux 6.12 on (sched_setattr(2), "custom slice"); nice values and
// policies stay, and those that have no slices (real-time ones) are left alone.
#pragma once

#include <cstdint>

namespace rankine {

// The shortest that Linux gives.
inline constexpr std::int64_t kShortSliceNs = 100'000;

// Of the calling thread. 0: this kernel, or the thread's policy, has none that could be told.
std::int64_t time_slice_ns() noexcept;

// The calling thread's slice becomes short, where it is not and the kernel allows it; threads and
// processes that it starts later begin with it.
void shorten_time_slice() noexcept;

// The same, once per thread: for whoever is about to give its core away.
inline void shorten_time_slice_once() noexcept {
  thread_local constinit bool asked = false;
  if (asked) [[likely]]
    return;
  asked = true;
  shorten_time_slice();
}

}  // namespace rankine
