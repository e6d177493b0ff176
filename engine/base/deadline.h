// Times of the monotonic clock and how long to wait, in nanoseconds, as sums that cannot overflow:
// what is longer than their 63 bits can say (292 years) is for ever.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

namespace rankine {

inline constexpr std::int64_t kForEverNs = std::numeric_limits<std::int64_t>::max();

constexpr std::int64_t saturated_ns(std::chrono::milliseconds duration) {
  using std::chrono::milliseconds;
  constexpr milliseconds kMost(kForEverNs / 1'000'000);
  if (duration > kMost) return kForEverNs;
  return std::max(duration, -kMost).count() * 1'000'000;
}

constexpr std::int64_t saturated_ns(double ns) {
  return ns < 0x1p63 ? static_cast<std::int64_t>(ns) : kForEverNs;
}

// The time `duration_ns` after `now_ns`, which is not negative.
constexpr std::int64_t deadline_after(std::int64_t now_ns, std::int64_t duration_ns) {
  return duration_ns > kForEverNs - now_ns ? kForEverNs : now_ns + duration_ns;
}

}  // namespace rankine
