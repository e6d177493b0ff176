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

std::vector<int> level_groups(const Topology& topology, const Placement& placement) {
  std::vector<const Cpu*> cpus;
  for (const RankPlace& place : placement.ranks) {
    cpus.push_back(topology.find_cpu(place.cpu));
    if (cpus.back() == nullptr) return {};
  }
  std::vector<int> sizes;
  const int n = static_cast<int>(cpus.size());
  for (const auto id : {&Cpu::l3, &Cpu::numa_node, &Cpu::package}) {
    std::vector<int> ids;
    for (const Cpu* cpu : cpus) ids.push_back(cpu->*id);
    const int g = n > 0 ? even_runs(ids) : 0;
    if (g <= 1 || g >= n) continue;
    if (sizes.empty() || (g > sizes.back() && g % sizes.back() == 0)) sizes.push_back(g);
  }
  return sizes;
}

}  // namespace rankine
