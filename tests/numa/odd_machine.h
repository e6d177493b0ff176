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
  std::vector<int> distances{};       // between its nodes, row by row; empty: not known
};

// As hwloc_topology_load(), for a topology whose text has been set.
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

// One at a time: what is made goes through a global.
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
