// The mixer of SplitMix64: Steele, Lea & Flood, "Fast splittable pseudorandom number generators",
// OOPSLA 2014.
#pragma once

#include <cstdint>

namespace rankine {

// The generator's states are multiples of this, and what it gives are the states mixed.
inline constexpr std::uint64_t kSplitMixStep = 0x9e3779b97f4a7c15u;

// One to one; every bit of x reaches every bit of the result. 0 stays 0.
constexpr std::uint64_t splitmix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// A hash, and the next number that belongs to what it is of: for sequences.
constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t next) {
  hash = (hash ^ next) * kSplitMixStep;
  return hash ^ hash >> 32;
}

}  // namespace rankine
