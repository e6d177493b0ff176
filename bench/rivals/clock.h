// Time stamps cheap enough to stand on both sides of one 100 ns call. Header only, also compiled by
// mpicxx.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace rankine::rivals {

using Ticks = std::uint64_t;

// The fences keep the work that is timed between its two stamps: loads have arrived, stores are
// issued.
inline Ticks ticks_now() noexcept {
#if defined(__x86_64__)
  _mm_lfence();
  const Ticks now = __rdtsc();
  _mm_lfence();
  return now;
#else
  return static_cast<Ticks>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

// Measured once per process against the steady clock, over 20 ms.
inline double nanoseconds_per_tick() noexcept {
  static const double value = [] {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    const Ticks first = ticks_now();
    while (Clock::now() - begin < std::chrono::milliseconds(20)) {
    }
    const Ticks last = ticks_now();
    const std::chrono::duration<double, std::nano> elapsed = Clock::now() - begin;
    return elapsed.count() / static_cast<double>(last - first);
  }();
  return value;
}

// What one pair of stamps adds to whatever stands between them. The counter may move in steps of 10
// ns, hence means; the least of several, because a mean takes in whoever interrupts.
inline double stamp_cost_ns() noexcept {
  constexpr int kPairs = 500;
  Ticks least = ~Ticks{0};
  for (int series = 0; series < 20; ++series) {
    Ticks sum = 0;
    for (int i = 0; i < kPairs; ++i) {
      const Ticks first = ticks_now();
      sum += ticks_now() - first;
    }
    least = std::min(least, sum);
  }
  return static_cast<double>(least) / kPairs * nanoseconds_per_tick();
}

}  // namespace rankine::rivals
