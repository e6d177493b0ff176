// Keeping moments of a modelled network's time on the real clock.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/run/crossbar.h"

namespace rankine {

// Sleeps until that moment of the monotonic clock. False: the communicator ended before.
bool sleep_until(std::int64_t when_ns, const Crossbar& crossbar) noexcept;

// The kernel may wake a thread later than asked, by its timer slack: 50 us by default. None for the
// calling thread from begin() to end().
class NoTimerSlack {
 public:
  void begin() noexcept;
  void end() noexcept;

 private:
  int before_ = 0;
};

// How many nanoseconds after the moment it asked for the calling thread is woken, `sleeps` times;
// as a wall clock sleeps. To be called on all ranks' threads at once, as these will sleep.
std::vector<std::int64_t> measure_wake_ups(int sleeps, std::int64_t sleep_ns,
                                           const WaitPolicy& policy);

}  // namespace rankine
