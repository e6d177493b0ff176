// What processors move between their caches, and what two threads that write should not share.
#pragma once

#include <cstddef>

namespace rankine {

inline constexpr std::size_t kCacheLine = 64;  // bytes

// So many bytes, and what is left of the last line that they begin.
constexpr std::size_t whole_lines(std::size_t bytes) {
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

}  // namespace rankine
