// Fake machines for tests: OddMachine describes machines with unequal parts, noted_bindings records
// mbind() requests, and PretendedMachine makes a fake machine answer for the real one.
#pragma once

#include <hwloc.h>
#include <sched.h>

#include "numa/memory.h"
#include "numa/system_calls.h"
#include "numa/topology.h"
#include "tests/testing.h"

namespace rankine {

// A machine that hwloc's synthetic notation cannot describe, because its parts are unequal. hwloc
// loads `text`, then removes CPUs and memory.
struct OddMachine {
  std::string text{};                 // in hwloc's notation
  std::vector<int> without_cpus{};    // offline or outside of the cpuset; never all CPUs
  std::vector<int> without_memory{};  // nodes
  std::vector<int> slow_cpus{};       // if not empty: the slow cores of a hybrid CPU
  std::vector<int> distances{};       // between its nodes, row by row; empty: unknown
};

// Replaces hwloc_topology_load() for a topology whose text has been set.
inline int load_odd(hwloc_topology* topology, const OddMachine& machine) {
  const int result = real_system_calls().hwloc_topology_load(topology);
  if (result != 0) return result;
  const hwloc_bitmap_t keep = hwloc_bitmap_dup(hwloc_topology_get_topology_cpuset(topology));
  for (const int cpu : machine.without_cpus) {
    hwloc_bitmap_clr(keep, static_cast<unsigned>(cpu));
  }
  EXPECT_EQ(hwloc_topology_restrict(topology, keep, 0), 0);  // nodes without CPUs stay
  if (!machine.slow_cpus.empty()) {
    const hwloc_bitmap_t slow = hwloc_bitmap_alloc();
    for (const int cpu : machine.slow_cpus) {
      hwloc_bitmap_set(slow, static_cast<unsigned>(cpu));
    }
    hwloc_bitmap_and(slow, slow, keep);
    hwloc_bitmap_andnot(keep, keep, slow);
    if (!hwloc_bitmap_iszero(slow)) hwloc_cpukinds_register(topology, slow, 0, 0, nullptr, 0);
    if (!hwloc_bitmap_iszero(keep)) hwloc_cpukinds_register(topology, keep, 1, 0, nullptr, 0);
    hwloc_bitmap_free(slow);
  }
  hwloc_bitmap_free(keep);
  for (const int number : machine.without_memory) {
    const hwloc_obj_t node =
        hwloc_get_numanode_obj_by_os_index(topology, static_cast<unsigned>(number));
    if (node != nullptr) node->attr->numanode.local_memory = 0;
  }
  if (!machine.distances.empty()) {
    std::vector<hwloc_obj_t> nodes;
    for (hwloc_obj_t node = nullptr;
         (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr;) {
      nodes.push_back(node);
    }
    EXPECT_EQ(machine.distances.size(), nodes.size() * nodes.size());
    std::vector<hwloc_uint64_t> values(machine.distances.begin(), machine.distances.end());
    const hwloc_distances_add_handle_t matrix = hwloc_distances_add_create(
        topology, "NUMALatency",
        HWLOC_DISTANCES_KIND_FROM_USER | HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0);
    EXPECT_EQ(hwloc_distances_add_values(topology, matrix, static_cast<unsigned>(nodes.size()),
                                         nodes.data(), values.data(), 0),
              0);
    EXPECT_EQ(hwloc_distances_add_commit(topology, matrix, 0), 0);
  }
  return 0;
}

namespace internal {

inline const OddMachine* machine_to_make = nullptr;
inline int load_machine_to_make(hwloc_topology* topology) {
  return load_odd(topology, *machine_to_make);
}

}  // namespace internal

// Not thread-safe: passes the machine through a global.
inline Topology make(const OddMachine& machine) {
  internal::machine_to_make = &machine;
  SystemCalls calls = real_system_calls();
  calls.hwloc_topology_load = internal::load_machine_to_make;
  ScopedSystemCalls scope(calls);
  TopologyResult result = Topology::synthetic(machine.text);
  EXPECT_EQ(result.error, "");
  return result.ok() ? *std::move(result.topology) : Topology::flat({}, false);
}

}  // namespace rankine

// Fakes that grant and record every mbind() request, also for nodes that this machine lacks.

namespace rankine::noted_bindings {

struct Bound {
  const std::byte* end = nullptr;
  int mode = -1;
  std::vector<int> nodes;
};
// One record for the process, because function pointers cannot capture.
struct Seen {
  std::mutex mutex;
  std::map<const std::byte*, Bound> bound;  // by first byte; a later request replaces its part
};
inline Seen seen;

inline void forget() {
  const std::lock_guard lock(seen.mutex);
  seen.bound.clear();
}

inline long mbind(void* address, unsigned long bytes, int mode, const unsigned long* mask,
                  unsigned long, unsigned) {
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(address) % 4096, 0U);
  const auto* const base = static_cast<const std::byte*>(address);
  Bound bound{base + bytes, mode, {}};
  for (int node = 0; node < 64; ++node) {
    if ((mask[0] >> node & 1U) != 0) bound.nodes.push_back(node);
  }
  const std::lock_guard lock(seen.mutex);
  seen.bound[base] = std::move(bound);
  return 0;
}

// Forgets the range, because a later mapping at this address has no request yet.
inline int munmap(void* address, std::size_t bytes) {
  const auto* const base = static_cast<const std::byte*>(address);
  const std::lock_guard lock(seen.mutex);
  seen.bound.erase(seen.bound.lower_bound(base), seen.bound.lower_bound(base + bytes));
  return real_system_calls().munmap(address, bytes);
}

inline SystemCalls calls() {
  SystemCalls calls = real_system_calls();
  calls.mbind = mbind;
  calls.munmap = munmap;
  return calls;
}

// The nodes that a byte was bound to; empty if it was not bound.
inline std::vector<int> nodes_of(const void* address) {
  const auto* const at = static_cast<const std::byte*>(address);
  const std::lock_guard lock(seen.mutex);
  auto found = seen.bound.upper_bound(at);
  if (found == seen.bound.begin()) return {};
  --found;
  return at < found->second.end ? found->second.nodes : std::vector<int>{};
}

// Checks the first and the last byte of the range.
inline void expect_on(int node, const MemoryRange& range, const char* what) {
  const auto* const base = static_cast<const std::byte*>(range.base);
  EXPECT_EQ(nodes_of(base), std::vector<int>{node}) << what;
  EXPECT_EQ(nodes_of(base + range.bytes - 1), std::vector<int>{node}) << what;
}
inline void expect_on(int node, const std::vector<MemoryRange>& ranges, const char* what) {
  for (const MemoryRange& range : ranges) expect_on(node, range, what);
}

}  // namespace rankine::noted_bindings

// A fake machine that answers for the real one: hwloc describes it, the kernel grants its CPUs,
// pins threads to them, and binds memory to those of its nodes that have memory. For tests of code
// that uses hwloc and the kernel, such as Team.

namespace rankine {

// At most one may exist at a time. The constructor clears noted_bindings, which then records
// mbind() requests.
class PretendedMachine {
 public:
  explicit PretendedMachine(const OddMachine& machine)
      : machine_(machine), scope_(calls(machine_)) {}

 private:
  static inline const OddMachine* current = nullptr;
  static inline std::vector<int> granted, with_memory;
  static inline thread_local std::vector<int> allowed;  // of this thread; empty: all granted CPUs

  static SystemCalls calls(const OddMachine& machine) {
    const Topology topology = make(machine);
    current = &machine;
    granted = topology.os_cpus();
    with_memory.clear();
    for (const NumaNode& node : topology.nodes()) {
      if (node.memory_bytes > 0) with_memory.push_back(node.os_index);
    }
    noted_bindings::forget();
    SystemCalls calls = noted_bindings::calls();
    calls.hwloc_topology_load = load;
    calls.sched_getaffinity = get_affinity;
    calls.sched_setaffinity = set_affinity;
    calls.mbind = mbind;
    return calls;
  }

  static int load(hwloc_topology* topology) {
    EXPECT_EQ(hwloc_topology_set_synthetic(topology, current->text.c_str()), 0);
    EXPECT_EQ(hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM), 0);
    return load_odd(topology, *current);
  }

  static int get_affinity(pid_t, std::size_t bytes, cpu_set_t* mask) {
    CPU_ZERO_S(bytes, mask);
    for (const int cpu : allowed.empty() ? granted : allowed) {
      CPU_SET_S(static_cast<std::size_t>(cpu), bytes, mask);
    }
    return 0;
  }

  static int set_affinity(pid_t, std::size_t bytes, const cpu_set_t* mask) {
    std::vector<int> wanted;
    for (const int cpu : granted) {
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, mask)) wanted.push_back(cpu);
    }
    errno = EINVAL;
    if (wanted.empty()) return -1;
    allowed = wanted;
    return 0;
  }

  static long mbind(void* address, unsigned long bytes, int mode, const unsigned long* mask,
                    unsigned long most, unsigned flags) {
    errno = EINVAL;  // the kernel's error if no requested node has memory
    const bool any = std::any_of(with_memory.begin(), with_memory.end(),
                                 [&](int node) { return (mask[0] >> node & 1U) != 0; });
    return any ? noted_bindings::mbind(address, bytes, mode, mask, most, flags) : -1;
  }

  const OddMachine machine_;
  ScopedSystemCalls scope_;
};

}  // namespace rankine
