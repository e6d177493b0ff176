#include "numa/memory_nodes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace rankine {
namespace {

// Of every node to every node, where hwloc knows all of them; else of none.
void read_distances(hwloc_topology_t hwloc, std::vector<NumaNode>& nodes) {
  unsigned count = 1;  // room for so many in, found so many out
  hwloc_distances_s* found = nullptr;
  if (hwloc_distances_get_by_type(hwloc, HWLOC_OBJ_NUMANODE, &count, &found,
                                  HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) != 0 ||
      count == 0) {
    return;
  }
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<int>::max());
  const int n = static_cast<int>(nodes.size());
  bool all = true;
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) {
      hwloc_uint64_t there = 0, back = 0;
      all &= hwloc_distances_obj_pair_values(found, memory_node_at(hwloc, from),
                                             memory_node_at(hwloc, to), &there, &back) == 0;
      nodes[static_cast<std::size_t>(from)].distances.push_back(
          static_cast<int>(std::min<std::uint64_t>(there, kMost)));
    }
  }
  hwloc_distances_release(hwloc, found);
  if (all) return;
  for (NumaNode& node : nodes) node.distances.clear();
}

}  // namespace

hwloc_obj_t memory_node_at(hwloc_topology_t hwloc, int index) {
  return hwloc_get_obj_by_type(hwloc, HWLOC_OBJ_NUMANODE, static_cast<unsigned>(index));
}

std::vector<NumaNode> read_memory_nodes(hwloc_topology_t hwloc) {
  std::vector<NumaNode> nodes;
  const int count = hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_NUMANODE);
  for (int i = 0; i < count; ++i) {
    const hwloc_obj_t node = memory_node_at(hwloc, i);
    nodes.push_back({static_cast<int>(node->os_index), node->attr->numanode.local_memory, {}, {}});
  }
  read_distances(hwloc, nodes);
  return nodes;
}

int home_node(hwloc_topology_t hwloc, hwloc_obj_t cpu, const std::vector<NumaNode>& nodes) {
  const int none = static_cast<int>(nodes.size());
  int own = none, best = none;
  const auto distance_to = [&](int node) {
    const std::vector<int>& all = nodes[static_cast<std::size_t>(own)].distances;
    return all.empty() ? 0 : all[static_cast<std::size_t>(node)];
  };
  for (hwloc_obj_t around = cpu; around != nullptr; around = around->parent) {
    for (int i = 0; i < none; ++i) {
      const hwloc_obj_t node = memory_node_at(hwloc, i);
      if (!hwloc_bitmap_isset(around->nodeset, node->os_index)) continue;
      if (own == none && hwloc_bitmap_isset(node->cpuset, cpu->os_index)) own = i;
      if (nodes[static_cast<std::size_t>(i)].memory_bytes == 0) continue;
      const bool nearer = best == none || (own != none && distance_to(i) < distance_to(best));
      if (nearer) best = i;
    }
  }
  return best != none ? best : own;
}

}  // namespace rankine
