// Topology describes a machine: its CPUs, and their cores, caches and memory nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rankine {

// Bytes of the caches of one CPU; 0: absent or unknown.
struct CacheSizes {
  std::size_t l1d;
  std::size_t l2;
  std::size_t l3;

  bool operator==(const CacheSizes&) const = default;
};

// One hardware thread. os_index and numa_node are the operating system's numbers (for pinning and
// binding); core, package and l3 count from 0 within this topology, over its usable CPUs only.
struct Cpu {
  int os_index;
  int core;
  int package;
  // node of its memory: its own node, or the nearest with memory if its own has none
  int numa_node;
  int l3;         // CPUs with a common L3, or CPUs without an L3 on one memory node (counted last)
  int smt_index;  // 0 for the first usable hardware thread of its core, 1 for its sibling, ...
  int speed = 0;  // hybrid CPUs: kinds of cores from 0, faster ones higher; otherwise 0
  bool has_l3 = false;
  CacheSizes caches{};  // of this CPU

  bool operator==(const Cpu&) const = default;
};

struct NumaNode {
  int os_index;
  std::uint64_t memory_bytes;  // 0: unknown
  std::vector<int> cpus;       // os_index of its usable CPUs; empty for a memory-only node
  // Distances to every node in the order of Topology::nodes(), as stated by the firmware (ACPI
  // SLIT: 10 to itself; 20 means twice the time); empty: unknown.
  std::vector<int> distances;

  bool operator==(const NumaNode&) const = default;
};

struct TopologyResult;

// A plain value: read once, then independent of hwloc; copies are independent and const use is
// thread-safe. Has at least one CPU and one node; every CPU's numa_node is in nodes(). CPUs are in
// hwloc's logical order: neighbours in the list are neighbours in the machine.
class Topology {
 public:
  // This machine, restricted to the CPUs of the calling thread, or its CPUs before it was pinned
  // (placement.h; a thread inherits its creator's pin). If HWLOC_FSROOT, HWLOC_SYNTHETIC or
  // HWLOC_XMLFILE describe a machine, that one. A warning names each of these variables, and each
  // name in HWLOC_COMPONENTS, that hwloc cannot use. If hwloc fails, or claims to describe this
  // machine but lacks a CPU that the kernel grants, the result is flat() over the granted CPUs,
  // with one warning. So is the result in a privileged program if its user has set a variable of
  // hwloc: hwloc obeys them all, including those that load plugins. Where hwloc is not installed,
  // the kernel's files tell the same about this machine, or about the one under HWLOC_FSROOT, and
  // a warning names each other variable. Throws only std::bad_alloc.
  static Topology detect();

  // A machine that need not exist, in hwloc's notation: "pack:2 [numa] l3:4 core:8 pu:2". Never
  // is_this_system. Up to 4,096 CPUs. Needs hwloc. The error quotes the text and shows the
  // notation.
  static TopologyResult synthetic(std::string_view text);

  // Unknown structure: every CPU is a core, in one package, on one node, with one L3. An empty list
  // means CPU 0. `source` is kept for reports.
  static Topology flat(const std::vector<int>& os_cpus, bool is_this_system,
                       std::string source = "flat");

  const std::vector<Cpu>& cpus() const { return cpus_; }
  const std::vector<NumaNode>& nodes() const { return nodes_; }
  int cores() const { return cores_; }
  int packages() const { return packages_; }
  int l3_groups() const { return l3_groups_; }  // number of Cpu::l3 groups, also without an L3
  int l3_caches() const;                        // number of groups with an L3
  std::size_t l3_bytes() const;                 // total of all L3 caches; 0: none, or unknown
  const CacheSizes& caches() const { return cpus_.front().caches; }  // the first CPU's
  std::size_t page_bytes() const { return page_bytes_; }
  std::size_t huge_page_bytes() const { return huge_page_bytes_; }

  // False: this describes another machine. Placement still works (for drawing); no thread or memory
  // may be pinned or bound.
  bool is_this_system() const { return is_this_system_; }

  // False for flat(): its single node is an assumption, so no memory may be bound to it.
  bool knows_nodes() const { return knows_nodes_; }

  // The origin: "hwloc", "/sys, without hwloc", "synthetic: <text>", "flat: <why>".
  const std::string& source() const { return source_; }

  // nullptr if the number is unknown here. The pointer is valid as long as this object stays
  // unchanged.
  const Cpu* find_cpu(int os_index) const;
  const NumaNode* find_node(int os_index) const;

  std::vector<int> os_cpus() const;  // the os_index of every CPU, in the order of cpus()

  // "2 packages, 2 NUMA nodes, 8 L3 groups, 64 cores, 128 CPUs (hwloc)".
  std::string summary() const;

 private:
  friend class TopologyReader;
  Topology() = default;

  std::vector<Cpu> cpus_;
  std::vector<NumaNode> nodes_;
  int cores_ = 0;
  int packages_ = 0;
  int l3_groups_ = 0;
  std::size_t page_bytes_ = 0;
  std::size_t huge_page_bytes_ = 0;
  bool is_this_system_ = false;
  bool knows_nodes_ = false;
  std::string source_;
};

struct TopologyResult {
  std::optional<Topology> topology;  // set exactly when error is empty
  std::string error;
  bool ok() const { return error.empty(); }
};

}  // namespace rankine
