// operator new that can be told to fail. Linking this library replaces operator new of the whole
// program, at the price of two looks per allocation; under a sanitizer, which brings its
// own, it is left alone.
#pragma once

#include <cstdint>

namespace rankine::faults {

// Whether operator new is ours in this build.
bool new_can_fail();

// While it lives, allocations of this thread count, and fail where they have been told to. Nests.
class AllocationsCount {
 public:
  AllocationsCount();
  ~AllocationsCount();
  AllocationsCount(const AllocationsCount&) = delete;
  AllocationsCount& operator=(const AllocationsCount&) = delete;
};

// The k-th allocation that counts from now on fails (from 1; 0: none), and with `all_later` each
// after it. For all threads.
void fail_allocation(std::int64_t k, bool all_later);
// The k-th allocation that counts from now on first does this, on its thread (once; nullptr:
// nothing).
void at_allocation(std::int64_t k, void (*act)());
// That have counted since.
std::int64_t allocations_counted();
// From now on blocks that come and go on any thread are counted, or not.
void watch_blocks(bool watch);
// How many more have come than gone while that was so.
std::int64_t blocks_alive();

}  // namespace rankine::faults
