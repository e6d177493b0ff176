#include "numa/system_calls.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace rankine {
namespace {

std::atomic<const SystemCalls*> in_force{nullptr};  // nullptr: the real ones

HwlocFunctions functions_in(void* library) {
  HwlocFunctions found{};
#define RANKINE_FIND(name) \
  found.name = reinterpret_cast<decltype(found.name)>(dlsym(library, "hwloc_" #name));
  RANKINE_FUNCTIONS_OF_HWLOC(RANKINE_FIND)
#undef RANKINE_FIND
  return found;
}

}  // namespace

const HwlocFunctions* hwloc_functions() {
  void* const library = system_calls().dlopen("libhwloc.so.15", RTLD_NOW);  // of every hwloc 2.x
  if (library == nullptr) return nullptr;
  static const HwlocFunctions functions = functions_in(library);
  // The newest of the functions: hwloc 2.4 has it.
  return functions.cpukinds_get_by_cpuset != nullptr ? &functions : nullptr;
}

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
