// The machine as ranks see it: CPUs, the cores, caches and memory nodes they belong to.
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

// One hardware thread. os_index and numa_node are the operating system's numbers (what pinning and
// binding take); core, package and l3 count from 0 within this topology, over its usable CPUs only.
struct Cpu {
  int os_index;
  int core;
  int package;
  int numa_node;  // where its memory is: its own node, or the nearest with memory if that has none
  int l3;         // CPUs with a common L3, or CPUs without an L3 on one memory node (counted last)
  int smt_index;  // 0 for the first usable hardware thread of its core, 1 for its sibling, ...
  int speed = 0;  // hybrid CPUs: kinds of cores from 0, faster ones higher; else 0
  bool has_l3 = false;
  CacheSizes caches{};  // its own

  bool operator==(const Cpu&) const = default;
};

struct NumaNode {
  int os_index;
  std::uint64_t memory_bytes;  // 0: unknown
  std::vector<int> cpus;       // os_index of its usable CPUs; empty for a memory-only node
  // To every node in the order of Topology::nodes(), as the firmware states them (ACPI SLIT: 10 to
  // itself, 20 is twice the time); empty: unknown.
  std::vector<int> distances;

  bool operator==(const NumaNode&) const = default;
};

struct TopologyResult;

// A plain value: read once, then free of hwloc; copies are independent and const use is
// thread-safe. Has at least one CPU and one node; every CPU's numa_node is in nodes(). CPUs stand
// in hwloc's logical order: neighbours in the list are neighbours in the machine.
class Topology {
 public:
  // This machine, restricted to the CPUs that the calling thread may use, or might before it was
  // pinned (pin.h; a thread inherits its creator's pin), or the machine that HWLOC_FSROOT,
  // HWLOC_SYNTHETIC or HWLOC_XMLFILE describe instead;
  // a warning names each of these and of the names in HWLOC_COMPONENTS that hwloc cannot use. If
  // hwloc fails, or claims to describe this machine but lacks a CPU that the kernel grants, gives
  // flat() over the granted CPUs and one warning. So it does in a privileged program whose user has
  // set a variable of hwloc, which obeys them all, also those that load plugins. Throws nothing but
  // std::bad_alloc.
  static Topology detect();

  // A machine that need not exist, in hwloc's notation: "pack:2 [numa] l3:4 core:8 pu:2". Never
  // is_this_system. Up to 4,096 CPUs. The error quotes the text and shows the notation.
  static TopologyResult synthetic(std::string_view text);

  // No structure known: every CPU a core of its own, one package, one node, one L3. An empty list
  // stands for CPU 0. `source` is kept for reports.
  static Topology flat(const std::vector<int>& os_cpus, bool is_this_system,
                       std::string source = "flat");

  const std::vector<Cpu>& cpus() const { return cpus_; }
  const std::vector<NumaNode>& nodes() const { return nodes_; }
  int cores() const { return cores_; }
  int packages() const { return packages_; }
  int l3_groups() const { return l3_groups_; }  // of Cpu::l3, also those without an L3
  int l3_caches() const;                        // those with an L3
  std::size_t l3_bytes() const;                 // of all L3 caches together; 0: none, or unknown
  const CacheSizes& caches() const { return cpus_.front().caches; }  // of the first CPU
  std::size_t page_bytes() const { return page_bytes_; }
  std::size_t huge_page_bytes() const { return huge_page_bytes_; }

  // False: a description of another machine. Placement still works (for drawing); nothing may be
  // pinned or bound.
  bool is_this_system() const { return is_this_system_; }

  // False for flat(): its single node is an assumption, so no memory may be bound to it.
  bool knows_nodes() const { return knows_nodes_; }

  // Where this came from: "hwloc", "synthetic: <text>", "flat: <why>".
  const std::string& source() const { return source_; }

  // nullptr where the number is unknown here. The pointer lives as long as this object stays
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
