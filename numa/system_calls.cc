#include "numa/system_calls.h"

#include <hwloc.h>
#include <numaif.h>
#include <sys/mman.h>

#include <atomic>

namespace rankine {
namespace {

std::atomic<const SystemCalls*> in_force{nullptr};  // nullptr: the real ones

}  // namespace

const SystemCalls& real_system_calls() {
  static const SystemCalls calls = {
      ::mmap,
      ::munmap,
      ::madvise,
      ::mbind,
      ::move_pages,
      ::mlock2,
      ::sched_setaffinity,
      ::sched_getaffinity,
      ::hwloc_topology_load,
  };
  return calls;
}

const SystemCalls& system_calls() {
  // Pairs with the release in ScopedSystemCalls: a thread that sees the pointer sees its table.
  const SystemCalls* calls = in_force.load(std::memory_order_acquire);
  return calls != nullptr ? *calls : real_system_calls();
}

ScopedSystemCalls::ScopedSystemCalls(const SystemCalls& calls)
    : calls_(calls), before_(in_force.load(std::memory_order_acquire)) {
  in_force.store(&calls_, std::memory_order_release);  // pairs with system_calls()
}

ScopedSystemCalls::~ScopedSystemCalls() {
  in_force.store(before_, std::memory_order_release);  // pairs with system_calls()
}

}  // namespace rankine
