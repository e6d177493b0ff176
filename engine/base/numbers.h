// This header mixes numbers and adds times without overflow. The mixer is that of SplitMix64
// (Steele, Lea & Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

namespace rankine {

// The generator's states are multiples of this; its outputs are the mixed states.
inline constexpr std::uint64_t kSplitMixStep = 0x9e3779b97f4a7c15u;

// A bijection; every bit of x affects every bit of the result. 0 maps to 0.
constexpr std::uint64_t splitmix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Adds the next number of a sequence to the sequence's hash.
constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t next) {
  hash = (hash ^ next) * kSplitMixStep;
  return hash ^ hash >> 32;
}

// Times of the monotonic clock and durations, in nanoseconds; sums saturate. A time beyond 63 bits
// (292 years) means for ever.

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

// The time `duration_ns` after `now_ns`, which must not be negative.
constexpr std::int64_t deadline_after(std::int64_t now_ns, std::int64_t duration_ns) {
  return duration_ns > kForEverNs - now_ns ? kForEverNs : now_ns + duration_ns;
}

}  // namespace rankine
