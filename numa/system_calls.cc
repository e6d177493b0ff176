#include "numa/system_calls.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "numa/hwloc_functions.h"

namespace rankine {
namespace {

std::atomic<const SystemCalls*> in_force{nullptr};  // nullptr: the real ones

}  // namespace

const SystemCalls& real_system_calls() {
  static const SystemCalls calls = {
      ::mmap,
      ::munmap,
      ::madvise,
      // libc has no function for these two.
      [](void* address, unsigned long bytes, int mode, const unsigned long* mask,
         unsigned long most,
         unsigned flags) { return syscall(SYS_mbind, address, bytes, mode, mask, most, flags); },
      [](int process, unsigned long count, void** pages, const int* nodes, int* status, int flags) {
        return syscall(SYS_move_pages, process, count, pages, nodes, status, flags);
      },
      ::mlock2,
      ::sched_setaffinity,
      ::sched_getaffinity,
      ::dlopen,
      [](hwloc_topology* topology) { return hwloc_functions()->topology_load(topology); },
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
