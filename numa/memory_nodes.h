// Memory nodes as hwloc has them, for topology.cc: how large, how far apart, and which of them
// serves a CPU.
#pragma once

#include <hwloc.h>

#include <vector>

#include "numa/topology.h"

namespace rankine {

// In hwloc's logical order, which is that of the indices below; without CPUs yet.
std::vector<NumaNode> read_memory_nodes(hwloc_topology_t hwloc);

hwloc_obj_t memory_node_at(hwloc_topology_t hwloc, int index);

// The index of the node that serves a CPU: one with memory, since the kernel binds nothing to a
// node without (EINVAL); of those the nearest to the CPU's own node, or where that decides nothing,
// the innermost in the machine's tree, and there the first: memory-only nodes (HBM, CXL) come after
// the plain ones. Where no size is known, the first that spans it. nodes.size(): there is none.
int home_node(hwloc_topology_t hwloc, hwloc_obj_t cpu, const std::vector<NumaNode>& nodes);

}  // namespace rankine
