// What processors move between their caches, and what two threads that write should not share.
#pragma once

#include <cstddef>

namespace rankine {

inline constexpr std::size_t kCacheLine = 64;  // bytes

}  // namespace rankine
