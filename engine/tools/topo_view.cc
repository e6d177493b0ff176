#include "engine/tools/topo_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

std::vector<int> ranks_with(const Placement& placement, int RankPlace::*where, int value) {
  std::vector<int> ranks;
  for (std::size_t r = 0; r < placement.ranks.size(); ++r) {
    if (placement.ranks[r].*where == value) ranks.push_back(static_cast<int>(r));
  }
  return ranks;
}

}  // namespace

std::vector<int> TopoView::ranks_on_cpu(int cpu) const {
  return ranks_with(placement, &RankPlace::cpu, cpu);
}

std::vector<int> TopoView::ranks_on_node(int node) const {
  return ranks_with(placement, &RankPlace::node, node);
}

std::size_t TopoView::misplaced_bytes(int rank) const {
  const auto r = static_cast<std::size_t>(rank);
  const int home = placement.ranks[r].node;
  if (!real || home == kNotPlaced || !topology.knows_nodes()) return 0;
  return real->memory[r].all().bytes_elsewhere(home);
}

std::vector<std::string> nodes_without_cpus(const Topology& topology) {
  const auto& nodes = topology.nodes();
  const bool sizes_known = std::any_of(nodes.begin(), nodes.end(),
                                       [](const NumaNode& node) { return node.memory_bytes > 0; });
  std::vector<std::string> lines;
  for (const NumaNode& node : nodes) {
    if (!node.cpus.empty()) continue;
    std::string what = "memory only";
    if (node.memory_bytes > 0) {
      what = format_bytes(node.memory_bytes) + "  " + what;
    } else if (sizes_known) {
      what = "no memory; CPUs near it count to another node";
    }
    lines.push_back(fmt::format("node {}  {}", node.os_index, what));
  }
  return lines;
}

}  // namespace rankine::tools
