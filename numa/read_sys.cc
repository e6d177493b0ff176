// Reads a machine from the files of Linux, for machines without hwloc.

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "engine/base/files.h"
#include "numa/cpus.h"
#include "numa/found_machine.h"

namespace rankine {
namespace {

class SystemFiles {
 public:
  explicit SystemFiles(const std::string& root) : folder_(root + "/sys/devices/") {}

  // Without the newline at its end; empty: no such file.
  std::string text(const std::string& path) const {
    constexpr std::size_t kMostBytes = std::size_t{1} << 16;
    std::string text = read_small_file(folder_ + path, kMostBytes).text;
    while (text.ends_with('\n')) text.pop_back();
    return text;
  }

  std::vector<int> list(const std::string& path) const { return parse_cpu_list(text(path)).cpus; }

  // The first CPU of a list, which names the part that the CPUs share; nullopt: no such file.
  std::optional<std::uint64_t> first(const std::string& path) const {
    const std::string found = text(path);
    if (found.empty()) return std::nullopt;
    return std::strtoull(found.c_str(), nullptr, 10);
  }

  // "48K", "24590908 kB", "1M" -> bytes.
  static std::uint64_t bytes(const char* text) {
    char* unit = nullptr;
    const std::uint64_t number = std::strtoull(text, &unit, 10);
    while (*unit == ' ') ++unit;
    return number << (*unit == 'M' ? 20U : *unit == 'K' || *unit == 'k' ? 10U : 0U);
  }

 private:
  const std::string folder_;
};

std::vector<NumaNode> read_nodes(const SystemFiles& files, std::map<int, std::size_t>* own_node) {
  std::vector<NumaNode> nodes;
  const std::vector<int> online = files.list("system/node/online");
  for (const int number : online) {
    const std::string folder = fmt::format("system/node/node{}/", number);
    for (const int cpu : files.list(folder + "cpulist")) (*own_node)[cpu] = nodes.size();
    NumaNode node{number, 0, {}, {}};
    const std::string memory = files.text(folder + "meminfo");
    constexpr std::string_view kTotal = "MemTotal:";
    const std::size_t total = memory.find(kTotal);
    if (total != std::string::npos) {
      node.memory_bytes = SystemFiles::bytes(memory.c_str() + total + kTotal.size());
    }
    std::istringstream distances(files.text(folder + "distance"));
    for (int distance; distances >> distance;) node.distances.push_back(distance);
    nodes.push_back(std::move(node));
  }
  if (nodes.empty()) nodes.push_back({0, 0, {}, {}});  // a kernel without NUMA
  for (const NumaNode& node : nodes) {
    if (nodes.size() > 1 && node.distances.size() == nodes.size()) continue;
    for (NumaNode& each : nodes) each.distances.clear();
  }
  return nodes;
}

// The node with memory that is nearest to the CPU's own node, which wins against equal ones.
std::size_t home_of(std::size_t own, const std::vector<NumaNode>& nodes) {
  const auto distance = [&](std::size_t node) {
    return nodes[own].distances.empty() ? (node == own ? 0 : 1) : nodes[own].distances[node];
  };
  std::size_t best = nodes.size();
  const auto consider = [&](std::size_t node) {
    if (nodes[node].memory_bytes == 0) return;
    if (best == nodes.size() || distance(node) < distance(best)) best = node;
  };
  consider(own);
  for (std::size_t node = 0; node < nodes.size(); ++node) consider(node);
  return best != nodes.size() ? best : own;
}

void read_caches(const SystemFiles& files, const std::string& folder, FoundCpu* cpu) {
  for (int i = 0;; ++i) {
    const std::string cache = fmt::format("{}cache/index{}/", folder, i);
    const std::string level = files.text(cache + "level");
    if (level.empty()) return;
    if (files.text(cache + "type") == "Instruction") continue;
    const std::size_t bytes = SystemFiles::bytes(files.text(cache + "size").c_str());
    if (level == "1") cpu->caches.l1d = bytes;
    if (level == "2") cpu->caches.l2 = bytes;
    if (level == "3") {
      cpu->caches.l3 = bytes;
      cpu->l3 = files.first(cache + "shared_cpu_list");
    }
  }
}

// From the slowest kind of core: by the capacity that the kernel states, or as Intel's hybrid CPUs
// say it under older kernels.
void read_speeds(const SystemFiles& files, std::vector<FoundCpu>* cpus) {
  const std::vector<int> small = files.list("cpu_atom/cpus");
  std::set<std::uint64_t> kinds;
  std::vector<std::uint64_t> kind_of;
  for (const FoundCpu& cpu : *cpus) {
    const auto capacity = files.first(fmt::format("system/cpu/cpu{}/cpu_capacity", cpu.number));
    const bool is_small = std::find(small.begin(), small.end(), cpu.number) != small.end();
    kind_of.push_back(capacity.value_or(0) * 2 + (is_small ? 0 : 1));
    kinds.insert(kind_of.back());
  }
  for (std::size_t i = 0; i < cpus->size(); ++i) {
    (*cpus)[i].speed = static_cast<int>(std::distance(kinds.begin(), kinds.find(kind_of[i])));
  }
}

// Parts begin in the order of their first CPUs, each inside the larger ones.
void put_neighbours_together(std::vector<FoundCpu>* cpus, const std::map<int, std::size_t>& own) {
  using Key = std::array<std::uint64_t, 5>;
  std::map<std::size_t, std::uint64_t> first_of_node;
  std::map<std::uint64_t, std::set<std::size_t>> nodes_of_l3;
  for (const auto& [cpu, node] : own) {
    first_of_node.emplace(node, static_cast<std::uint64_t>(cpu));
  }
  const auto node_of = [&](const FoundCpu& cpu) {
    const auto found = own.find(cpu.number);
    return found != own.end() ? found->second : 0;
  };
  for (const FoundCpu& cpu : *cpus) {
    if (cpu.l3) nodes_of_l3[*cpu.l3].insert(node_of(cpu));
  }
  const bool nodes_are_larger =
      std::all_of(nodes_of_l3.begin(), nodes_of_l3.end(),
                  [](const auto& l3_and_nodes) { return l3_and_nodes.second.size() == 1; });
  const auto key = [&](const FoundCpu& cpu) {
    const auto number = static_cast<std::uint64_t>(cpu.number);
    std::uint64_t outer = first_of_node[node_of(cpu)], inner = cpu.l3.value_or(number);
    if (!nodes_are_larger) std::swap(outer, inner);
    return Key{cpu.package, outer, inner, cpu.core, number};
  };
  std::sort(cpus->begin(), cpus->end(),
            [&](const FoundCpu& a, const FoundCpu& b) { return key(a) < key(b); });
}

}  // namespace

FoundMachine read_sys(const std::string& root) {
  const SystemFiles files(root);
  FoundMachine found;
  std::map<int, std::size_t> own_node;  // by CPU
  found.nodes = read_nodes(files, &own_node);
  for (const int number : files.list("system/cpu/online")) {
    const std::string folder = fmt::format("system/cpu/cpu{}/", number);
    FoundCpu cpu{};
    cpu.number = number;
    cpu.core = std::strtoull(cpus_of_core(number, root).c_str(), nullptr, 10);
    const auto package = files.first(folder + "topology/package_cpus_list");
    const auto older = files.first(folder + "topology/core_siblings_list");  // before Linux 5.10
    cpu.package = package.value_or(older.value_or(0));
    const auto own = own_node.find(number);
    cpu.node = home_of(own != own_node.end() ? own->second : 0, found.nodes);
    read_caches(files, folder, &cpu);
    found.cpus.push_back(cpu);
  }
  read_speeds(files, &found.cpus);
  put_neighbours_together(&found.cpus, own_node);
  return found;
}

}  // namespace rankine
