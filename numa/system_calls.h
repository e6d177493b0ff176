// SystemCalls is the only way from numa/ to the kernel and hwloc, so that a test can make any of
// the calls refuse. HwlocFunctions are the functions of hwloc that numa/ calls, from the libhwloc
// that is installed on the machine: no package of Rankine needs another package.
#pragma once

#include <hwloc.h>
#include <sched.h>
#include <sys/types.h>

#include <cstddef>

// The names without hwloc_. The header's inline functions that call others are not for us.
#define RANKINE_FUNCTIONS_OF_HWLOC(each)                                                         \
  each(bitmap_isset) each(cpukinds_get_by_cpuset) each(distances_get_by_type)                    \
      each(distances_release) each(get_api_version) each(get_nbobjs_by_depth)                    \
          each(get_obj_by_depth) each(get_type_depth) each(topology_destroy) each(topology_init) \
              each(topology_is_thissystem) each(topology_load) each(topology_set_components)     \
                  each(topology_set_flags) each(topology_set_synthetic)

namespace rankine {

struct HwlocFunctions {
#define RANKINE_DECLARE(name) decltype(&::hwloc_##name) name;
  RANKINE_FUNCTIONS_OF_HWLOC(RANKINE_DECLARE)
#undef RANKINE_DECLARE
};

// nullptr: hwloc 2.4 or a later 2.x is not installed. Thread-safe.
const HwlocFunctions* hwloc_functions();

// Each member has the signature, the result and the errno of the function with its name. A
// replacement is called from any thread. Typical use in a test:
//
//   SystemCalls calls = real_system_calls();
//   calls.mbind = [](void*, unsigned long, int, const unsigned long*, unsigned long, unsigned) ->
//   long {
//     errno = EPERM;                            // the answer of Docker's default seccomp profile
//     return -1;
//   };
//   ScopedSystemCalls scope(calls);
struct SystemCalls {
  void* (*mmap)(void* address, std::size_t bytes, int protection, int flags, int file,
                off_t offset);
  int (*munmap)(void* address, std::size_t bytes);
  int (*madvise)(void* address, std::size_t bytes, int advice);
  long (*mbind)(void* address, unsigned long bytes, int mode, const unsigned long* node_mask,
                unsigned long max_node, unsigned flags);
  long (*move_pages)(int process, unsigned long count, void** pages, const int* nodes, int* status,
                     int flags);
  int (*mlock2)(const void* address, std::size_t bytes, unsigned flags);
  int (*sched_setaffinity)(pid_t thread, std::size_t bytes, const cpu_set_t* mask);
  int (*sched_getaffinity)(pid_t thread, std::size_t bytes, cpu_set_t* mask);
  void* (*dlopen)(const char* library, int mode);
  int (*hwloc_topology_load)(hwloc_topology* topology);  // only if hwloc is installed
};

// The functions of libc, the kernel and hwloc.
const SystemCalls& real_system_calls();

// The table in force: the real one unless a ScopedSystemCalls is alive. Thread-safe.
const SystemCalls& system_calls();

// Puts a copy of `calls` in force for the whole process until destroyed. Scopes nest like a stack.
// No thread may be inside numa/ when a scope ends: join what the test started first.
class ScopedSystemCalls {
 public:
  explicit ScopedSystemCalls(const SystemCalls& calls);
  ~ScopedSystemCalls();
  ScopedSystemCalls(const ScopedSystemCalls&) = delete;
  ScopedSystemCalls& operator=(const ScopedSystemCalls&) = delete;

 private:
  SystemCalls calls_;
  const SystemCalls* before_;
};

}  // namespace rankine
