#include "numa/levels.h"

#include <algorithm>
#include <cstddef>
#include <set>

namespace rankine {
namespace {

// g where the ids are g times one, g times another, ...; 0 where they are not.
int even_runs(const std::vector<int>& ids) {
  const auto end = std::find_if(ids.begin(), ids.end(), [&](int id) { return id != ids.front(); });
  const std::ptrdiff_t g = end - ids.begin();
  std::set<int> seen;
  const auto n = static_cast<std::ptrdiff_t>(ids.size());
  for (std::ptrdiff_t first = 0; first < n; first += g) {
    const auto run = ids.begin() + first;
    if (!seen.insert(*run).second) return 0;
    if (std::count(run, run + std::min(g, n - first), *run) != std::min(g, n - first)) return 0;
  }
  return static_cast<int>(g);
}

}  // namespace

std::vector<int> level_groups(std::span<const std::vector<int>> groups_of_ranks) {
  std::vector<int> sizes;
  for (const std::vector<int>& ids : groups_of_ranks) {
    const int n = static_cast<int>(ids.size());
    const int g = n > 0 ? even_runs(ids) : 0;
    if (g <= 1 || g >= n) continue;
    if (sizes.empty() || (g > sizes.back() && g % sizes.back() == 0)) sizes.push_back(g);
  }
  return sizes;
}

std::vector<int> level_groups(const Topology& topology, const Placement& placement) {
  std::vector<std::vector<int>> groups;
  for (const auto id : {&Cpu::l3, &Cpu::numa_node, &Cpu::package}) {
    groups.emplace_back();
    for (const RankPlace& place : placement.ranks) {
      const Cpu* cpu = topology.find_cpu(place.cpu);
      if (cpu == nullptr) return {};
      groups.back().push_back(cpu->*id);
    }
  }
  return level_groups(groups);
}

}  // namespace rankine
