// Reads the machine's topology from hwloc, or from the kernel where hwloc is not installed.

#include "numa/topology.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/files.h"
#include "numa/cpus.h"
#include "numa/memory.h"
#include "numa/refusals.h"
#include "numa/system_calls.h"

namespace rankine {

namespace {

// A machine as hwloc or the kernel describes it, for Topology.

// CPUs with equal numbers of a part share the part.
struct FoundCpu {
  int number;  // the operating system's
  std::uint64_t core, package;
  std::optional<std::uint64_t> l3;
  std::size_t node;  // index of its home: the node of its memory
  CacheSizes caches;
  int speed;
};

struct FoundMachine {
  std::vector<FoundCpu> cpus;   // neighbours are neighbours in the machine; empty: none found
  std::vector<NumaNode> nodes;  // their `cpus` are empty
};

// The kernel's description, for machines without hwloc.

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

// Reads the files under <root>/sys/devices.
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

// hwloc's view of a machine, once it is loaded.
class HwlocTopology {
 public:
  // get() is nullptr afterwards if hwloc is not installed, refuses, or may not be asked.
  HwlocTopology();
  ~HwlocTopology() {
    if (topology_ != nullptr) hwloc_->topology_destroy(topology_);
  }
  HwlocTopology(const HwlocTopology&) = delete;
  HwlocTopology& operator=(const HwlocTopology&) = delete;

  hwloc_topology_t get() const { return topology_; }
  const HwlocFunctions& hwloc() const { return *hwloc_; }
  bool load() { return system_calls().hwloc_topology_load(topology_) == 0; }

  int count(hwloc_obj_type_t type) const {
    return static_cast<int>(hwloc_->get_nbobjs_by_depth(topology_, depth(type)));
  }
  hwloc_obj_t object(hwloc_obj_type_t type, int index) const {
    return hwloc_->get_obj_by_depth(topology_, depth(type), static_cast<unsigned>(index));
  }
  hwloc_obj_t memory_node(int index) const { return object(HWLOC_OBJ_NUMANODE, index); }
  bool is_this_system() const { return hwloc_->topology_is_thissystem(topology_) != 0; }

  // nullopt if the answer is unusable: a CPU without a number or a node.
  std::optional<FoundMachine> read() const;

 private:
  int depth(hwloc_obj_type_t type) const { return hwloc_->get_type_depth(topology_, type); }
  // In hwloc's logical order, which gives the indices.
  std::vector<NumaNode> read_nodes() const;
  // Reads the distances from every node to every node; none if hwloc lacks some of them.
  void read_distances(std::vector<NumaNode>& nodes) const;
  // The index of the node that serves a CPU. The node must have memory, since the kernel binds
  // nothing to a node without (EINVAL). Among these it is the nearest to the CPU's own node; if
  // distances decide nothing, the innermost in the machine's tree, and there the first: memory-only
  // nodes (HBM, CXL) come after the plain ones. If no size is known: the first that spans the CPU.
  // nodes.size(): none.
  std::size_t home_of(hwloc_obj_t cpu, const std::vector<NumaNode>& nodes) const;

  const HwlocFunctions* hwloc_ = nullptr;
  hwloc_topology_t topology_ = nullptr;
};

// hwloc obeys all of its variables, and one of them names a folder of plugins, so a privileged
// program never calls hwloc while its user has set any. (Unsetting them is not safe beside
// threads.)
bool may_ask_hwloc() { return !is_privileged() || variables_with_prefix("HWLOC_").empty(); }

HwlocTopology::HwlocTopology() {
  if (may_ask_hwloc()) hwloc_ = hwloc_functions();
  if (hwloc_ != nullptr && hwloc_->topology_init(&topology_) != 0) topology_ = nullptr;
}

void HwlocTopology::read_distances(std::vector<NumaNode>& nodes) const {
  unsigned count = 1;  // in: room for distances; out: number found
  hwloc_distances_s* found = nullptr;
  if (hwloc_->distances_get_by_type(topology_, HWLOC_OBJ_NUMANODE, &count, &found,
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
      all &= hwloc_distances_obj_pair_values(found, memory_node(from), memory_node(to), &there,
                                             &back) == 0;
      nodes[static_cast<std::size_t>(from)].distances.push_back(
          static_cast<int>(std::min<std::uint64_t>(there, kMost)));
    }
  }
  hwloc_->distances_release(topology_, found);
  if (all) return;
  for (NumaNode& node : nodes) node.distances.clear();
}

std::vector<NumaNode> HwlocTopology::read_nodes() const {
  std::vector<NumaNode> nodes;
  const int count = this->count(HWLOC_OBJ_NUMANODE);
  for (int i = 0; i < count; ++i) {
    const hwloc_obj_t node = memory_node(i);
    nodes.push_back({static_cast<int>(node->os_index), node->attr->numanode.local_memory, {}, {}});
  }
  read_distances(nodes);
  return nodes;
}

std::size_t HwlocTopology::home_of(hwloc_obj_t cpu, const std::vector<NumaNode>& nodes) const {
  const std::size_t none = nodes.size();
  std::size_t own = none, best = none;
  const auto distance_to = [&](std::size_t node) {
    return nodes[own].distances.empty() ? 0 : nodes[own].distances[node];
  };
  for (hwloc_obj_t around = cpu; around != nullptr; around = around->parent) {
    for (std::size_t i = 0; i < none; ++i) {
      const hwloc_obj_t node = memory_node(static_cast<int>(i));
      if (!hwloc_->bitmap_isset(around->nodeset, node->os_index)) continue;
      if (own == none && hwloc_->bitmap_isset(node->cpuset, cpu->os_index)) own = i;
      if (nodes[i].memory_bytes == 0) continue;
      const bool nearer = best == none || (own != none && distance_to(i) < distance_to(best));
      if (nearer) best = i;
    }
  }
  return best != none ? best : own;
}

std::size_t cache_bytes(hwloc_obj_t cpu, hwloc_obj_type_t type) {
  const hwloc_obj_t cache = hwloc_get_ancestor_obj_by_type(nullptr, type, cpu);
  return cache != nullptr ? static_cast<std::size_t>(cache->attr->cache.size) : 0;
}

std::optional<FoundMachine> HwlocTopology::read() const {
  FoundMachine found;
  found.nodes = read_nodes();
  const int cpu_count = count(HWLOC_OBJ_PU);
  for (int i = 0; i < cpu_count; ++i) {
    const hwloc_obj_t object = this->object(HWLOC_OBJ_PU, i);
    if (object->os_index == HWLOC_UNKNOWN_INDEX) return std::nullopt;
    const auto part = [&](hwloc_obj_type_t type) -> std::optional<std::uint64_t> {
      const hwloc_obj_t around = hwloc_get_ancestor_obj_by_type(nullptr, type, object);
      if (around == nullptr) return std::nullopt;
      return around->gp_index;
    };
    FoundCpu cpu{};
    cpu.number = static_cast<int>(object->os_index);
    cpu.node = home_of(object, found.nodes);
    if (cpu.node == found.nodes.size()) return std::nullopt;
    cpu.core = part(HWLOC_OBJ_CORE).value_or(object->gp_index);
    cpu.package = part(HWLOC_OBJ_PACKAGE).value_or(0);
    cpu.l3 = part(HWLOC_OBJ_L3CACHE);
    cpu.caches = {cache_bytes(object, HWLOC_OBJ_L1CACHE), cache_bytes(object, HWLOC_OBJ_L2CACHE),
                  cache_bytes(object, HWLOC_OBJ_L3CACHE)};
    // hwloc numbers kinds from the most frugal to the fastest; -1: all equal, or unknown.
    cpu.speed = std::max(0, hwloc_->cpukinds_get_by_cpuset(topology_, object->cpuset, 0));
    found.cpus.push_back(cpu);
  }
  return found;
}

// Numbers keys 0, 1, 2, ... in the order of their first appearance.
template <typename Key>
class DenseIndex {
 public:
  int of(const Key& key) {
    return numbers_.emplace(key, static_cast<int>(numbers_.size())).first->second;
  }
  int count() const { return static_cast<int>(numbers_.size()); }

 private:
  std::map<Key, int> numbers_;
};

// 0: unknown, as to musl.
CacheSizes caches_of_libc() {
#ifdef _SC_LEVEL1_DCACHE_SIZE
  const auto bytes = [](int name) { return static_cast<std::size_t>(std::max(sysconf(name), 0L)); };
  return {bytes(_SC_LEVEL1_DCACHE_SIZE), bytes(_SC_LEVEL2_CACHE_SIZE),
          bytes(_SC_LEVEL3_CACHE_SIZE)};
#else
  return {};
#endif
}

std::string plural(int count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

}  // namespace

// Turns a machine that a reader has found into the value type. `wanted` (rising) restricts it;
// empty: everything. nullopt if no CPU is left.
class TopologyReader {
 public:
  static std::optional<Topology> read(FoundMachine found, const std::vector<int>& wanted,
                                      bool is_this_system, std::string source) {
    Topology result;
    result.nodes_ = std::move(found.nodes);
    DenseIndex<std::uint64_t> cores, packages, l3_caches, nodes_without_l3;
    std::map<int, int> cpus_of_core;
    for (const FoundCpu& one : found.cpus) {
      if (!wanted.empty() && !std::binary_search(wanted.begin(), wanted.end(), one.number)) {
        continue;
      }
      Cpu cpu{};
      cpu.os_index = one.number;
      cpu.core = cores.of(one.core);
      cpu.package = packages.of(one.package);
      cpu.has_l3 = one.l3.has_value();
      cpu.l3 = cpu.has_l3 ? l3_caches.of(*one.l3) : nodes_without_l3.of(one.node);
      cpu.caches = one.caches;
      cpu.numa_node = result.nodes_[one.node].os_index;
      cpu.smt_index = cpus_of_core[cpu.core]++;
      cpu.speed = one.speed;
      result.cpus_.push_back(cpu);
      result.nodes_[one.node].cpus.push_back(one.number);
    }
    if (result.cpus_.empty()) return std::nullopt;
    result.cores_ = cores.count();
    result.packages_ = packages.count();
    for (Cpu& cpu : result.cpus_) cpu.l3 += cpu.has_l3 ? 0 : l3_caches.count();
    result.l3_groups_ = l3_caches.count() + nodes_without_l3.count();
    result.page_bytes_ = rankine::page_bytes();
    result.huge_page_bytes_ = rankine::huge_page_bytes();
    result.is_this_system_ = is_this_system;
    result.knows_nodes_ = true;
    result.source_ = std::move(source);
    return result;
  }
};

namespace {

constexpr char kNoHwloc[] =
    "hwloc 2.4 or later is not installed (Debian's libhwloc15, Fedora's hwloc-libs)";

// The reason to reject a reader's answer; the flat topology carries it as its source.
struct Doubt {
  std::string why;
};

// hwloc is slow for large descriptions (quadratic in the CPUs, minutes for 100,000), so first
// multiply the children of each level in the text. Text in brackets (memory) or parentheses
// (attributes) has no CPUs.
constexpr std::uint64_t kMostSyntheticCpus = 4096;
std::uint64_t cpus_described(const std::string& text) {
  std::uint64_t cpus = 1;
  int inside = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '[') ++inside;
    if (text[i] == ')' || text[i] == ']') --inside;
    const bool begins = i == 0 || text[i - 1] == ':' || text[i - 1] == ' ';
    if (inside > 0 || !begins || text[i] < '0' || text[i] > '9') continue;
    const std::uint64_t children = std::strtoull(&text[i], nullptr, 0);  // as hwloc reads them
    cpus *= std::clamp<std::uint64_t>(children, 1, kMostSyntheticCpus + 1);
    if (cpus > kMostSyntheticCpus) return cpus;
  }
  return cpus;
}

// The reason why hwloc cannot use the file in HWLOC_XMLFILE; empty: no error found.
std::string refusal_of_xml(const std::string& path) {
  constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  if (path == "-") return "";  // standard input
  const SmallFile file = read_small_file(path, kMostBytes);
  if (!file.ok()) return file.error;
  constexpr std::string_view kRoot = "<topology", kVersion = "version=\"";
  const std::size_t root = file.text.find(kRoot);
  if (root == std::string::npos) return "it is no XML of hwloc";
  const std::string tag = file.text.substr(root, file.text.find('>', root) - root);
  const std::size_t version = tag.find(kVersion);
  if (version == std::string::npos) return "";
  const int major = std::atoi(tag.c_str() + version + kVersion.size());
  const int highest = static_cast<int>(hwloc_functions()->get_api_version() >> 16);
  if (major <= highest) return "";
  return fmt::format(
      "it is of hwloc {}, and this is hwloc {}; export it again with "
      "'lstopo --export-xml-flags v{}'",
      major, highest, highest);
}

// The reason why hwloc cannot use the folder in HWLOC_FSROOT; empty: no error found.
std::string refusal_of_root(const std::string& path) {
  for (const char* const below : {"/sys/devices/system/cpu", "/sys/bus/cpu/devices"}) {
    if (access((path + below).c_str(), X_OK) == 0) return "";
  }
  return "it has no /sys/devices/system/cpu";
}

// The names in HWLOC_COMPONENTS ("linux,-x86,stop") that hwloc does not know.
std::vector<std::string> unknown_components(std::string_view list) {
  const HwlocTopology scratch;
  std::vector<std::string> unknown;
  while (scratch.get() != nullptr && !list.empty()) {
    std::string name(list.substr(0, list.find(',')));
    list.remove_prefix(std::min(list.size(), name.size() + 1));
    if (name.starts_with('-')) name.erase(0, 1);
    if (name.empty() || name == "stop") continue;
    const auto flag = HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST;
    if (scratch.hwloc().topology_set_components(scratch.get(), flag, name.c_str()) != 0) {
      unknown.push_back(std::move(name));
    }
  }
  return unknown;
}

struct UnusedVariable {
  std::string key, why;
};

// The variables that describe a machine or choose hwloc's sources and that hwloc cannot use.
// `found_this_system`: hwloc gave this machine although no variable says so.
std::vector<UnusedVariable> unused_variables(bool found_this_system) {
  std::vector<UnusedVariable> unused;
  const char* const components = environment_variable("HWLOC_COMPONENTS");
  const struct {
    const char *name, *component;
    std::string (*refusal)(const std::string&);
  } kDescriptions[] = {{"HWLOC_FSROOT", "linux", refusal_of_root},
                       {"HWLOC_SYNTHETIC", "synthetic", nullptr},
                       {"HWLOC_XMLFILE", "xml", refusal_of_xml}};
  for (const auto& [name, component, refusal] : kDescriptions) {
    const char* const value = environment_variable(name);
    if (value == nullptr || (refusal == refusal_of_root && std::string_view(value) == "/"))
      continue;
    std::string why = refusal != nullptr ? refusal(value) : "";
    if (why.empty() && !found_this_system) continue;
    if (why.empty()) {
      const bool is_asked = components == nullptr || std::strstr(components, component) != nullptr;
      why = is_asked ? "it is not understood"
                     : fmt::format("HWLOC_COMPONENTS must name {} for that", component);
    }
    unused.push_back({fmt::format("numa.{}", name),
                      fmt::format("hwloc cannot use {}=\"{}\": {}", name, value, why)});
  }
  if (components == nullptr) return unused;
  for (const std::string& name : unknown_components(components)) {
    unused.push_back({"numa.HWLOC_COMPONENTS",
                      fmt::format("hwloc cannot use HWLOC_COMPONENTS=\"{}\": it has no component "
                                  "'{}' (HWLOC_COMPONENTS_VERBOSE=1 lists all)",
                                  components, name)});
  }
  return unused;
}

// The topology of what a reader has found, or the reason to reject it.
std::optional<Topology> accept(std::optional<FoundMachine> found, const std::vector<int>& wanted,
                               bool is_this_system, const char* reader, std::string source,
                               Doubt* doubt) {
  std::optional<Topology> topology;
  if (found) {
    topology = TopologyReader::read(*std::move(found), wanted, is_this_system, std::move(source));
  }
  if (!topology) {
    doubt->why = fmt::format("{} gives a topology without usable CPUs and nodes", reader);
    return std::nullopt;
  }
  if (!wanted.empty() && topology->cpus().size() != wanted.size()) {
    std::vector<int> missing;
    for (int cpu : wanted) {
      if (topology->find_cpu(cpu) == nullptr) missing.push_back(cpu);
    }
    doubt->why = fmt::format("{} does not know CPUs {}, which the kernel grants", reader,
                             format_cpu_list(missing));
    return std::nullopt;
  }
  return topology;
}

// The kernel's view of this machine, or of the one under HWLOC_FSROOT.
std::optional<Topology> read_without_hwloc(const std::vector<int>& allowed, Doubt* doubt) {
  for (const char* name : {"HWLOC_COMPONENTS", "HWLOC_SYNTHETIC", "HWLOC_XMLFILE"}) {
    const char* const value = environment_variable(name);
    if (value == nullptr) continue;
    warn_once(fmt::format("numa.{}", name),
              fmt::format("{}=\"{}\" has no effect: {}", name, value, kNoHwloc));
  }
  const char* const root = environment_variable("HWLOC_FSROOT");
  const bool is_this_system = root == nullptr || std::string_view(root) == "/";
  return accept(
      read_sys(is_this_system ? "" : root), is_this_system ? allowed : std::vector<int>{},
      is_this_system, "/sys/devices",
      is_this_system ? "/sys, without hwloc" : "/sys, without hwloc, another machine's description",
      doubt);
}

// hwloc's view of this machine, or the reason to reject it.
std::optional<Topology> read_from_hwloc(const std::vector<int>& allowed, Doubt* doubt) {
  if (!may_ask_hwloc()) {
    doubt->why = "this program has more rights than its user, and variables of hwloc are set";
    return std::nullopt;
  }
  HwlocTopology hwloc;
  // hwloc may move this thread from CPU to CPU while it looks, and first asks for the mask to
  // restore. If the kernel does not report the mask, hwloc asks for ever.
  if (hwloc.get() != nullptr && allowed.empty()) {
    hwloc.hwloc().topology_set_flags(hwloc.get(), HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING);
  }
  if (hwloc.get() == nullptr || !hwloc.load()) {
    const int error = errno;
    std::string with;
    for (const char* name :
         {"HWLOC_COMPONENTS", "HWLOC_FSROOT", "HWLOC_SYNTHETIC", "HWLOC_XMLFILE"}) {
      const char* const value = environment_variable(name);
      if (value != nullptr) with += fmt::format(" {}=\"{}\"", name, value);
    }
    doubt->why = fmt::format("hwloc cannot load the topology{}{}: {}", with.empty() ? "" : " with",
                             with, std::strerror(error));
    for (const UnusedVariable& one : unused_variables(false)) doubt->why += "; " + one.why;
    return std::nullopt;
  }
  const bool is_this_system = hwloc.is_this_system();
  std::optional<Topology> topology =
      accept(hwloc.read(), is_this_system ? allowed : std::vector<int>{}, is_this_system, "hwloc",
             is_this_system ? "hwloc" : "hwloc, another machine's description", doubt);
  if (!topology) return std::nullopt;
  // hwloc silently ignores a description that it cannot read.
  const bool is_own = is_this_system && environment_variable("HWLOC_THISSYSTEM") == nullptr;
  for (const UnusedVariable& one : unused_variables(is_own)) {
    warn_once(one.key, one.why + "; hwloc goes on without it");
  }
  return topology;
}

}  // namespace

Topology Topology::detect() {
  std::vector<int> allowed = cpus_before_pin();
  Doubt doubt;
  std::optional<Topology> topology = hwloc_functions() != nullptr
                                         ? read_from_hwloc(allowed, &doubt)
                                         : read_without_hwloc(allowed, &doubt);
  if (topology) return *std::move(topology);
  if (allowed.empty()) {
    for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN); ++cpu) allowed.push_back(cpu);
  }
  warn_once("numa.hwloc", doubt.why + "; every CPU counts as a separate core, on one node");
  return flat(allowed, true, "flat: " + doubt.why);
}

TopologyResult Topology::synthetic(std::string_view text) {
  constexpr char kExample[] = "pack:2 [numa] l3:4 core:8 pu:2";
  const std::string description(text);
  if (cpus_described(description) > kMostSyntheticCpus) {
    return {std::nullopt, fmt::format("synthetic topology \"{}\" has too many CPUs; allowed are up "
                                      "to {}",
                                      text, kMostSyntheticCpus)};
  }
  if (hwloc_functions() == nullptr) {
    return {std::nullopt, fmt::format("synthetic topology \"{}\": {}", text, kNoHwloc)};
  }
  HwlocTopology hwloc;
  if (hwloc.get() == nullptr) {
    return {std::nullopt, "synthetic topology: hwloc_topology_init failed"};
  }
  if (hwloc.hwloc().topology_set_synthetic(hwloc.get(), description.c_str()) != 0) {
    return {std::nullopt,
            fmt::format(
                "synthetic topology \"{}\" is not understood by hwloc; expected levels from the "
                "package down to pu, such as \"{}\"",
                text, kExample)};
  }
  if (!hwloc.load()) {
    return {std::nullopt, fmt::format("synthetic topology \"{}\": hwloc cannot load it: {}", text,
                                      std::strerror(errno))};
  }
  Doubt doubt;
  // Also under HWLOC_THISSYSTEM=1 it is not this machine: the text is never evidence.
  std::optional<Topology> topology =
      accept(hwloc.read(), {}, false, "hwloc", "synthetic: " + description, &doubt);
  if (!topology) {
    return {std::nullopt,
            fmt::format(
                "synthetic topology \"{}\" has no usable CPUs and nodes; expected something like "
                "\"{}\"",
                text, kExample)};
  }
  return {std::move(topology), ""};
}

Topology Topology::flat(const std::vector<int>& os_cpus, bool is_this_system, std::string source) {
  Topology result;
  const std::vector<int> cpus = os_cpus.empty() ? std::vector<int>{0} : os_cpus;
  const CacheSizes caches = caches_of_libc();
  for (int number : cpus) {
    Cpu cpu{};
    cpu.os_index = number;
    cpu.has_l3 = true;
    cpu.caches = caches;
    cpu.core = result.cores_++;
    result.cpus_.push_back(cpu);
  }
  result.nodes_ = {{0, 0, cpus, {}}};
  result.packages_ = 1;
  result.l3_groups_ = 1;
  result.page_bytes_ = rankine::page_bytes();
  result.huge_page_bytes_ = rankine::huge_page_bytes();
  result.is_this_system_ = is_this_system;
  result.source_ = std::move(source);
  return result;
}

const Cpu* Topology::find_cpu(int os_index) const {
  const auto found = std::find_if(cpus_.begin(), cpus_.end(),
                                  [=](const Cpu& cpu) { return cpu.os_index == os_index; });
  return found != cpus_.end() ? &*found : nullptr;
}

const NumaNode* Topology::find_node(int os_index) const {
  const auto found = std::find_if(nodes_.begin(), nodes_.end(),
                                  [=](const NumaNode& node) { return node.os_index == os_index; });
  return found != nodes_.end() ? &*found : nullptr;
}

std::vector<int> Topology::os_cpus() const {
  std::vector<int> numbers;
  for (const Cpu& cpu : cpus_) numbers.push_back(cpu.os_index);
  return numbers;
}

int Topology::l3_caches() const {
  std::set<int> found;
  for (const Cpu& cpu : cpus_) {
    if (cpu.has_l3) found.insert(cpu.l3);
  }
  return static_cast<int>(found.size());
}

std::size_t Topology::l3_bytes() const {
  std::map<int, std::size_t> of_each;
  for (const Cpu& cpu : cpus_) of_each[cpu.l3] = cpu.caches.l3;
  std::size_t sum = 0;
  for (const auto& [l3, bytes] : of_each) sum += bytes;
  return sum;
}

std::string Topology::summary() const {
  const int l3 = l3_caches();
  return fmt::format("{}, {}, {}, {}, {} ({})", plural(packages_, "package", "packages"),
                     plural(static_cast<int>(nodes_.size()), "NUMA node", "NUMA nodes"),
                     l3 == 0 ? "no L3" : plural(l3, "L3 group", "L3 groups"),
                     plural(cores_, "core", "cores"),
                     plural(static_cast<int>(cpus_.size()), "CPU", "CPUs"), source_);
}

}  // namespace rankine
