// An operator new that fails on request. Linking this library replaces operator new of the whole
// program, at the price of two loads per allocation. Under a sanitizer, which has its own operator
// new, nothing is replaced.
#pragma once

#include <cstdint>

namespace rankine::faults {

// True if this build replaces operator new.
bool new_can_fail();

// While an object lives, allocations of its thread count and may fail. Objects may nest.
class AllocationsCount {
 public:
  AllocationsCount();
  ~AllocationsCount();
  AllocationsCount(const AllocationsCount&) = delete;
  AllocationsCount& operator=(const AllocationsCount&) = delete;
};

// Resets the count. The k-th counted allocation from now on fails (k from 1; 0: none), and with
// `all_later` each one after it. For all threads.
void fail_allocation(std::int64_t k, bool all_later);
// Resets the count. The k-th counted allocation from now on first calls act() on its thread (once;
// nullptr: no call).
void at_allocation(std::int64_t k, void (*act)());
// The number of counted allocations since then.
std::int64_t allocations_counted();
// Switches the count of live blocks, of all threads, on or off.
void watch_blocks(bool watch);
// The number of blocks allocated minus the number of blocks freed while the count was on.
std::int64_t blocks_alive();

}  // namespace rankine::faults
