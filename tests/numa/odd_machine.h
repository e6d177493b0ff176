// Machines that hwloc's notation cannot say: it only knows equal parts. A plain machine is made
// from text, then hwloc itself takes CPUs and memory away.
#pragma once

#include <gtest/gtest.h>
#include <hwloc.h>

#include <optional>
#include <string>
#include <vector>

#include "numa/system_calls.h"
#include "numa/topology.h"

namespace rankine {

struct OddMachine {
  std::string text{};                 // in hwloc's notation
  std::vector<int> without_cpus{};    // offline, or outside of the cpuset; not all
  std::vector<int> without_memory{};  // nodes
  std::vector<int> slow_cpus{};       // where not empty: these are the frugal cores of a hybrid CPU
};

namespace internal {

inline const OddMachine* machine_to_make = nullptr;

inline int load_odd_machine(hwloc_topology* topology) {
  const int result = real_system_calls().hwloc_topology_load(topology);
  if (result != 0) return result;
  const hwloc_bitmap_t keep = hwloc_bitmap_dup(hwloc_topology_get_topology_cpuset(topology));
  for (const int cpu : machine_to_make->without_cpus) {
    hwloc_bitmap_clr(keep, static_cast<unsigned>(cpu));
  }
  EXPECT_EQ(hwloc_topology_restrict(topology, keep, 0), 0);  // nodes without CPUs stay
  if (!machine_to_make->slow_cpus.empty()) {
    const hwloc_bitmap_t slow = hwloc_bitmap_alloc();
    for (const int cpu : machine_to_make->slow_cpus) {
      hwloc_bitmap_set(slow, static_cast<unsigned>(cpu));
    }
    hwloc_bitmap_and(slow, slow, keep);
    hwloc_bitmap_andnot(keep, keep, slow);
    if (!hwloc_bitmap_iszero(slow)) hwloc_cpukinds_register(topology, slow, 0, 0, nullptr, 0);
    if (!hwloc_bitmap_iszero(keep)) hwloc_cpukinds_register(topology, keep, 1, 0, nullptr, 0);
    hwloc_bitmap_free(slow);
  }
  hwloc_bitmap_free(keep);
  for (const int number : machine_to_make->without_memory) {
    const hwloc_obj_t node =
        hwloc_get_numanode_obj_by_os_index(topology, static_cast<unsigned>(number));
    if (node != nullptr) node->attr->numanode.local_memory = 0;
  }
  return 0;
}

}  // namespace internal

// One at a time: what is made goes through a global.
inline Topology make(const OddMachine& machine) {
  internal::machine_to_make = &machine;
  SystemCalls calls = real_system_calls();
  calls.hwloc_topology_load = internal::load_odd_machine;
  ScopedSystemCalls scope(calls);
  TopologyResult result = Topology::synthetic(machine.text);
  EXPECT_EQ(result.error, "");
  return result.ok() ? *std::move(result.topology) : Topology::flat({}, false);
}

}  // namespace rankine
