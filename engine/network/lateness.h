// Of wall clocks (network_clock.h).
#pragma once

#include <cstdint>

namespace rankine {

// How well the machine kept a wall clock's deadlines, over all ranks.
struct Lateness {
  std::int64_t deadlines = 0;     // that ranks slept for
  std::int64_t missed = 0;        // by more than the tolerance
  std::int64_t median_ns = 0;     // of the last deadlines: how long after it the rank went on
  std::int64_t worst_ns = 0;      // of all
  std::int64_t passed_on_ns = 0;  // the greatest distance from the plan that a rank is at
};

}  // namespace rankine
