// A machine as if it were this one: hwloc describes it, the kernel grants its CPUs, pins threads to
// them, and binds memory to those of its nodes that have some. For what asks both, as Team does.
#pragma once

#include <gtest/gtest.h>
#include <hwloc.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <vector>

#include "numa/system_calls.h"
#include "numa/topology.h"
#include "tests/numa/noted_bindings.h"
#include "tests/numa/odd_machine.h"

namespace rankine {

// One at a time. What was asked to be bound is in noted_bindings.h, which it forgets first.
class PretendedMachine {
 public:
  explicit PretendedMachine(const OddMachine& machine)
      : machine_(machine), scope_(calls(machine_)) {}

 private:
  static inline const OddMachine* current = nullptr;
  static inline std::vector<int> granted, with_memory;
  static inline thread_local std::vector<int>
      allowed;  // of this thread; empty: all that is granted

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
    errno = EINVAL;  // as of nodes without memory, which the kernel strikes out
    const bool any = std::any_of(with_memory.begin(), with_memory.end(),
                                 [&](int node) { return (mask[0] >> node & 1U) != 0; });
    return any ? noted_bindings::mbind(address, bytes, mode, mask, most, flags) : -1;
  }

  const OddMachine machine_;
  ScopedSystemCalls scope_;
};

}  // namespace rankine
