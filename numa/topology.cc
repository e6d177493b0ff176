// Reads the machine's topology from hwloc, including its memory nodes: their sizes, their
// distances, and the node that serves each CPU.

#include "numa/topology.h"

#include <fmt/core.h>
#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/environment_variable.h"
#include "engine/base/files.h"
#include "numa/cpus.h"
#include "numa/memory.h"
#include "numa/refusals.h"
#include "numa/system_calls.h"

namespace rankine {

// In hwloc's logical order, which gives the indices below; CPUs are not filled in yet.
std::vector<NumaNode> read_memory_nodes(hwloc_topology_t hwloc);

hwloc_obj_t memory_node_at(hwloc_topology_t hwloc, int index);

// The index of the node that serves a CPU. The node must have memory, since the kernel binds
// nothing to a node without (EINVAL). Among these it is the nearest to the CPU's own node; if
// distances decide nothing, the innermost in the machine's tree, and there the first: memory-only
// nodes (HBM, CXL) come after the plain ones. If no size is known: the first that spans the CPU.
// nodes.size(): none.
int home_node(hwloc_topology_t hwloc, hwloc_obj_t cpu, const std::vector<NumaNode>& nodes);

namespace {

// Reads the distances from every node to every node; none if hwloc lacks some of them.
void read_distances(hwloc_topology_t hwloc, std::vector<NumaNode>& nodes) {
  unsigned count = 1;  // in: room for distances; out: number found
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

namespace {

struct HwlocDestroy {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using HwlocTopology = std::unique_ptr<hwloc_topology, HwlocDestroy>;

// hwloc obeys all of its variables, and one of them names a folder of plugins, so a privileged
// program never calls hwloc while its user has set any. (Unsetting them is not safe beside
// threads.)
bool may_ask_hwloc() { return !is_privileged() || variables_with_prefix("HWLOC_").empty(); }

HwlocTopology new_hwloc_topology() {
  hwloc_topology_t raw = nullptr;
  if (!may_ask_hwloc()) return nullptr;
  return HwlocTopology(hwloc_topology_init(&raw) == 0 ? raw : nullptr);
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

std::size_t cache_bytes(hwloc_obj_t cpu, hwloc_obj_type_t type) {
  for (hwloc_obj_t object = cpu->parent; object != nullptr; object = object->parent) {
    if (object->type == type) return static_cast<std::size_t>(object->attr->cache.size);
  }
  return 0;
}

std::size_t cache_bytes_of_libc(int name) {
  const long bytes = sysconf(name);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

std::string plural(int count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

}  // namespace

// Turns a loaded hwloc topology into the value type. `wanted` (rising) restricts it; empty:
// everything. nullopt if hwloc's answer is unusable: no CPU, no node, or a CPU without a number or
// a node.
class TopologyReader {
 public:
  static std::optional<Topology> read(hwloc_topology_t hwloc, const std::vector<int>& wanted,
                                      std::string source) {
    Topology result;
    result.nodes_ = read_memory_nodes(hwloc);
    const int node_count = static_cast<int>(result.nodes_.size());

    DenseIndex<hwloc_obj_t> cores, packages, l3_caches, nodes_without_l3;
    std::map<int, int> cpus_of_core;
    const int cpu_count = hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_PU);
    for (int i = 0; i < cpu_count; ++i) {
      const hwloc_obj_t object =
          hwloc_get_obj_by_type(hwloc, HWLOC_OBJ_PU, static_cast<unsigned>(i));
      if (object->os_index == HWLOC_UNKNOWN_INDEX) return std::nullopt;
      const int number = static_cast<int>(object->os_index);
      if (!wanted.empty() && !std::binary_search(wanted.begin(), wanted.end(), number)) continue;

      const int node_index = home_node(hwloc, object, result.nodes_);
      if (node_index == node_count) return std::nullopt;
      const hwloc_obj_t node = memory_node_at(hwloc, node_index);

      const auto ancestor_or = [&](hwloc_obj_type_t type, hwloc_obj_t otherwise) {
        const hwloc_obj_t found = hwloc_get_ancestor_obj_by_type(hwloc, type, object);
        return found != nullptr ? found : otherwise;
      };
      Cpu cpu{};
      cpu.os_index = number;
      cpu.core = cores.of(ancestor_or(HWLOC_OBJ_CORE, object));
      cpu.package = packages.of(ancestor_or(HWLOC_OBJ_PACKAGE, hwloc_get_root_obj(hwloc)));
      const hwloc_obj_t l3 = ancestor_or(HWLOC_OBJ_L3CACHE, nullptr);
      cpu.has_l3 = l3 != nullptr;
      cpu.l3 = cpu.has_l3 ? l3_caches.of(l3) : nodes_without_l3.of(node);
      cpu.caches = {cache_bytes(object, HWLOC_OBJ_L1CACHE), cache_bytes(object, HWLOC_OBJ_L2CACHE),
                    cache_bytes(object, HWLOC_OBJ_L3CACHE)};
      cpu.numa_node = static_cast<int>(node->os_index);
      cpu.smt_index = cpus_of_core[cpu.core]++;
      // hwloc numbers kinds from the most frugal to the fastest; -1: all equal, or unknown.
      cpu.speed = std::max(0, hwloc_cpukinds_get_by_cpuset(hwloc, object->cpuset, 0));
      result.cpus_.push_back(cpu);
      result.nodes_[static_cast<std::size_t>(node_index)].cpus.push_back(number);
    }
    if (result.cpus_.empty()) return std::nullopt;
    result.cores_ = cores.count();
    result.packages_ = packages.count();
    for (Cpu& cpu : result.cpus_) cpu.l3 += cpu.has_l3 ? 0 : l3_caches.count();
    result.l3_groups_ = l3_caches.count() + nodes_without_l3.count();
    result.page_bytes_ = rankine::page_bytes();
    result.huge_page_bytes_ = rankine::huge_page_bytes();
    result.is_this_system_ = hwloc_topology_is_thissystem(hwloc) != 0;
    result.knows_nodes_ = true;
    result.source_ = std::move(source);
    return result;
  }
};

namespace {

// The reason to reject hwloc's answer; the flat topology carries it as its source.
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
  const int highest = static_cast<int>(hwloc_get_api_version() >> 16);
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
  const HwlocTopology scratch = new_hwloc_topology();
  std::vector<std::string> unknown;
  while (scratch != nullptr && !list.empty()) {
    std::string name(list.substr(0, list.find(',')));
    list.remove_prefix(std::min(list.size(), name.size() + 1));
    if (name.starts_with('-')) name.erase(0, 1);
    if (name.empty() || name == "stop") continue;
    const auto flag = HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST;
    if (hwloc_topology_set_components(scratch.get(), flag, name.c_str()) != 0) {
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

// hwloc's view of this machine, or the reason to reject it.
std::optional<Topology> read_from_hwloc(const std::vector<int>& allowed, Doubt* doubt) {
  if (!may_ask_hwloc()) {
    doubt->why = "this program has more rights than its user, and variables of hwloc are set";
    return std::nullopt;
  }
  const HwlocTopology hwloc = new_hwloc_topology();
  // hwloc may move this thread from CPU to CPU while it looks, and first asks for the mask to
  // restore. If the kernel does not report the mask, hwloc asks for ever.
  if (hwloc != nullptr && allowed.empty()) {
    hwloc_topology_set_flags(hwloc.get(), HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING);
  }
  if (hwloc == nullptr || system_calls().hwloc_topology_load(hwloc.get()) != 0) {
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
  const bool is_this_system = hwloc_topology_is_thissystem(hwloc.get()) != 0;
  std::optional<Topology> topology =
      TopologyReader::read(hwloc.get(), is_this_system ? allowed : std::vector<int>{},
                           is_this_system ? "hwloc" : "hwloc, another machine's description");
  if (!topology) {
    doubt->why = "hwloc gives a topology without usable CPUs and nodes";
    return std::nullopt;
  }
  if (is_this_system && !allowed.empty() && topology->cpus().size() != allowed.size()) {
    std::vector<int> missing;
    for (int cpu : allowed) {
      if (topology->find_cpu(cpu) == nullptr) missing.push_back(cpu);
    }
    doubt->why = fmt::format("hwloc does not know CPUs {}, which the kernel grants",
                             format_cpu_list(missing));
    return std::nullopt;
  }
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
  std::optional<Topology> topology = read_from_hwloc(allowed, &doubt);
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
  const HwlocTopology hwloc = new_hwloc_topology();
  if (hwloc == nullptr) return {std::nullopt, "synthetic topology: hwloc_topology_init failed"};
  if (hwloc_topology_set_synthetic(hwloc.get(), description.c_str()) != 0) {
    return {std::nullopt,
            fmt::format(
                "synthetic topology \"{}\" is not understood by hwloc; expected levels from the "
                "package down to pu, such as \"{}\"",
                text, kExample)};
  }
  if (system_calls().hwloc_topology_load(hwloc.get()) != 0) {
    return {std::nullopt, fmt::format("synthetic topology \"{}\": hwloc cannot load it: {}", text,
                                      std::strerror(errno))};
  }
  std::optional<Topology> topology =
      TopologyReader::read(hwloc.get(), {}, "synthetic: " + description);
  if (!topology) {
    return {std::nullopt,
            fmt::format(
                "synthetic topology \"{}\" has no usable CPUs and nodes; expected something like "
                "\"{}\"",
                text, kExample)};
  }
  topology->is_this_system_ = false;  // also under HWLOC_THISSYSTEM=1: the text is never evidence
  return {std::move(topology), ""};
}

Topology Topology::flat(const std::vector<int>& os_cpus, bool is_this_system, std::string source) {
  Topology result;
  const std::vector<int> cpus = os_cpus.empty() ? std::vector<int>{0} : os_cpus;
  const CacheSizes caches = {cache_bytes_of_libc(_SC_LEVEL1_DCACHE_SIZE),
                             cache_bytes_of_libc(_SC_LEVEL2_CACHE_SIZE),
                             cache_bytes_of_libc(_SC_LEVEL3_CACHE_SIZE)};
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
