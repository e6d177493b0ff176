// CPUs, quotas and topologies: a limit that is read is one.
#include <stdlib.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

#include <cmath>
#include <string>

#include "numa/cpus.h"
#include "numa/placement.h"
#include "numa/topology.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/targets.h"
#include "tests/numa/temp_tree.h"

namespace rankine::fuzz {
namespace {

// Up to the next line "--", which goes as well.
std::string take_part(std::string_view& input) {
  constexpr std::string_view kEnd = "\n--\n";
  const std::size_t end = input.find(kEnd);
  const std::string part(input.substr(0, end));
  input.remove_prefix(end == std::string_view::npos ? input.size() : end + kEnd.size());
  return part;
}

void require_cores(double cores) {
  require(std::isfinite(cores) && cores > 0, "a limit is a number of cores");
}

}  // namespace

void cpu_list(std::string_view input) {
  const CpuList list = parse_cpu_list(input);
  if (!list.ok()) return;
  for (const int cpu : list.cpus) require(cpu >= 0 && cpu < kMaxCpus, "a CPU's number");
  require(parse_cpu_list(format_cpu_list(list.cpus)).cpus == list.cpus, "format_cpu_list()");
}

void placement(std::string_view input) {
  const PolicyResult read = parse_placement_policy(input);
  if (!read.ok()) return;
  const PolicyResult again = parse_placement_policy(to_string(read.policy));
  require(again.ok() && again.policy == read.policy, "to_string() writes what is read");
  static const Topology machine = Topology::flat({0, 1, 5}, false);
  const Placement placed = place_ranks(machine, 4, read.policy);
  require(placed.ok() == (placed.ranks.size() == 4),
          "all ranks have a place, or there is an error");
}

void synthetic_topology(std::string_view input) {
  if (input.find('\0') != std::string_view::npos) return;  // hwloc's texts end there
  static const int quiet = setenv("HWLOC_HIDE_ERRORS", "2", 1);
  static_cast<void>(quiet);
#if defined(__SANITIZE_ADDRESS__)
  const __lsan::ScopedDisabler hwloc_loses_32_bytes_of_a_description_that_it_refuses;
#endif
  const TopologyResult read = Topology::synthetic(input);
  require(read.ok() == read.topology.has_value(), "a topology or an error");
  if (!read.ok()) return;
  const Topology& topology = *read.topology;
  require(!topology.cpus().empty() && !topology.nodes().empty(), "CPUs and nodes");
  require(topology.cpus().size() <= kMaxCpus, "no more CPUs than a machine has");
  require(!topology.is_this_system(), "a description is no evidence");
  for (const Cpu& cpu : topology.cpus()) {
    require(topology.find_node(cpu.numa_node) != nullptr, "every CPU's node is there");
  }
  for (const auto kind : {PlacementPolicy::Kind::compact, PlacementPolicy::Kind::scatter}) {
    require(place_ranks(topology, 5, {kind, {}}).ok(), "ranks can be placed on it");
  }
}

void cpu_quota(std::string_view input) {
  const std::string first = take_part(input), second = take_part(input);
  if (const auto cores = parse_cpu_max(first)) require_cores(*cores);
  if (const auto cores = parse_cfs_quota(first, second)) require_cores(*cores);
}

void cgroup_files(std::string_view input) {
  static const TempTree tree;
  tree.write("/proc/self/cgroup", take_part(input));
  tree.write("/proc/self/mountinfo", take_part(input));
  const std::string limit = take_part(input);
  for (const char* folder : {"/cg", "/cg/inner"}) {
    tree.write(std::string(folder) + "/cpu.max", limit);
    tree.write(std::string(folder) + "/cpu.cfs_quota_us", limit);
  }
  const auto quota = read_cpu_quota(tree.root());
  if (quota) require_cores(quota->cores);
  const CpuBudget budget = combine_cpu_budget({.cores = 4, .cpus = 4}, quota);
  require(budget.cores >= 1 && budget.cores <= 4, "at least one core, and no more than allowed");
  require(!budget.why.empty(), "and why");
}

}  // namespace rankine::fuzz
