#include "numa/placement.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "numa/cpus.h"
#include "numa/refusals.h"

namespace rankine {
namespace {

using Kind = PlacementPolicy::Kind;

struct NamedKind {
  Kind kind;
  std::string_view name;
};

constexpr NamedKind kNames[] = {
    {Kind::compact, "compact"},
    {Kind::scatter, "scatter"},
    {Kind::one_per_node, "one_per_node"},
    {Kind::none, "none"},
};

using Order = std::vector<const Cpu*>;

// The hardware threads with one smt_index: every core that has that many threads, once.
Order with_smt_index(const Topology& topology, int smt_index) {
  Order order;
  for (const Cpu& cpu : topology.cpus()) {
    if (cpu.smt_index == smt_index) order.push_back(&cpu);
  }
  return order;
}

// The cores of those CPUs.
std::set<int> cores_of(const Topology& topology, const std::vector<int>& cpus) {
  std::set<int> cores;
  for (const int number : cpus) {
    if (const Cpu* cpu = topology.find_cpu(number)) cores.insert(cpu->core);
  }
  return cores;
}

// Moves the CPUs of free cores to the front.
void free_first(Order& cpus, const std::set<int>& taken_cores) {
  std::stable_partition(cpus.begin(), cpus.end(),
                        [&](const Cpu* cpu) { return taken_cores.count(cpu->core) == 0; });
}

// Within one group, moves the CPUs of fast cores to the front.
void faster_first(Order& cpus) {
  std::stable_sort(cpus.begin(), cpus.end(),
                   [](const Cpu* a, const Cpu* b) { return a->speed > b->speed; });
}

// Node by node, in the order in which the nodes first appear; within a node faster cores first.
Order by_node(const Order& cpus) {
  std::vector<int> nodes;
  Order order;
  for (const Cpu* cpu : cpus) {
    if (std::find(nodes.begin(), nodes.end(), cpu->numa_node) == nodes.end()) {
      nodes.push_back(cpu->numa_node);
    }
  }
  for (const int node : nodes) {
    Order here;
    std::copy_if(cpus.begin(), cpus.end(), std::back_inserter(here),
                 [node](const Cpu* cpu) { return cpu->numa_node == node; });
    faster_first(here);
    order.insert(order.end(), here.begin(), here.end());
  }
  return order;
}

// The `ranks` CPUs to use, in machine order: neighbouring ranks stay neighbours even if siblings
// are needed.
Order compact(const Topology& topology, int ranks, const std::set<int>& taken_cores) {
  std::set<int> chosen;
  for (int smt_index = 0; static_cast<int>(chosen.size()) < ranks; ++smt_index) {
    Order layer = by_node(with_smt_index(topology, smt_index));
    if (layer.empty()) break;
    free_first(layer, taken_cores);
    for (const Cpu* cpu : layer) {
      if (static_cast<int>(chosen.size()) < ranks) chosen.insert(cpu->os_index);
    }
  }
  Order order;
  for (const Cpu& cpu : topology.cpus()) {
    if (chosen.count(cpu.os_index) != 0) order.push_back(&cpu);
  }
  return order;
}

// Takes one CPU in turn from each group of equal `keys[level]`; each group is first ordered by the
// levels below.
Order deal(const Order& cpus, const std::vector<int Cpu::*>& keys, std::size_t level) {
  if (level == keys.size()) {
    Order order = cpus;
    faster_first(order);
    return order;
  }
  std::vector<Order> groups;
  std::map<int, std::size_t> group_of;
  for (const Cpu* cpu : cpus) {
    const auto [entry, is_new] = group_of.emplace(cpu->*keys[level], groups.size());
    if (is_new) groups.emplace_back();
    groups[entry->second].push_back(cpu);
  }
  for (Order& group : groups) group = deal(group, keys, level + 1);
  Order order;
  for (std::size_t turn = 0; order.size() < cpus.size(); ++turn) {
    for (const Order& group : groups) {
      if (turn < group.size()) order.push_back(group[turn]);
    }
  }
  return order;
}

Order scatter(const Topology& topology, const std::set<int>& taken_cores) {
  Order order;
  for (int smt_index = 0;; ++smt_index) {
    const Order layer = with_smt_index(topology, smt_index);
    if (layer.empty()) return order;
    Order dealt = deal(layer, {&Cpu::package, &Cpu::numa_node, &Cpu::l3}, 0);
    free_first(dealt, taken_cores);
    order.insert(order.end(), dealt.begin(), dealt.end());
  }
}

Order first_of_each_node(const Topology& topology) {
  Order order;
  for (const NumaNode& node : topology.nodes()) {
    Order here;
    for (const int cpu : node.cpus) here.push_back(topology.find_cpu(cpu));
    faster_first(here);
    if (!here.empty()) order.push_back(here.front());
  }
  return order;
}

Placement failed(std::string error) {
  Placement placement;
  placement.error = std::move(error);
  return placement;
}

// Rank r sits on order[r mod size].
Placement seat(int ranks, const Order& order) {
  Placement placement;
  std::map<int, int> ranks_on_core;
  const auto cpu_of = [&](int rank) {
    return order[static_cast<std::size_t>(rank) % order.size()];
  };
  for (int rank = 0; rank < ranks; ++rank) ++ranks_on_core[cpu_of(rank)->core];
  for (int rank = 0; rank < ranks; ++rank) {
    const Cpu* cpu = cpu_of(rank);
    placement.ranks.push_back({cpu->os_index, cpu->numa_node, ranks_on_core[cpu->core] > 1});
  }
  placement.oversubscribed = static_cast<std::size_t>(ranks) > order.size();
  return placement;
}

Placement place_explicit(const Topology& topology, int ranks, const std::vector<int>& cpus) {
  if (cpus.empty())
    return failed("explicit placement: the CPU list is empty; allowed are 1 CPU and more");
  Order order;
  std::set<int> seen;
  for (int number : cpus) {
    const Cpu* cpu = topology.find_cpu(number);
    if (cpu == nullptr) {
      std::vector<int> allowed = topology.os_cpus();
      std::sort(allowed.begin(), allowed.end());
      return failed(fmt::format("explicit placement \"{}\": CPU {} may not be used; allowed are {}",
                                format_cpu_list(cpus), number, format_cpu_list(allowed)));
    }
    if (!seen.insert(number).second) {
      return failed(
          fmt::format("explicit placement \"{}\": CPU {} is listed twice; allowed is once",
                      format_cpu_list(cpus), number));
    }
    order.push_back(cpu);
  }
  return seat(ranks, order);
}

Placement place_one_per_node(const Topology& topology, int ranks) {
  const Order order = first_of_each_node(topology);
  if (static_cast<std::size_t>(ranks) > order.size()) {
    std::vector<int> nodes;
    for (const Cpu* cpu : order) nodes.push_back(cpu->numa_node);
    return failed(fmt::format(
        "placement one_per_node: ranks is {}; allowed are 1 to {} (nodes with CPUs: {}); use "
        "scatter for more ranks",
        ranks, order.size(), format_cpu_list(nodes)));
  }
  return seat(ranks, order);
}

}  // namespace

PolicyResult parse_placement_policy(std::string_view text) {
  if (text.empty()) return {};
  for (const NamedKind& named : kNames) {
    if (named.name == text) return {{named.kind, {}}, ""};
  }
  CpuList list = parse_cpu_list(text);
  if (!list.ok()) {
    return {
        {},
        fmt::format(
            "placement \"{}\" is unknown; allowed are compact, scatter, one_per_node, none, and "
            "CPUs ({})",
            text, list.error)};
  }
  return {{Kind::listed, std::move(list.cpus)}, ""};
}

std::string to_string(const PlacementPolicy& policy) {
  for (const NamedKind& named : kNames) {
    if (named.kind == policy.kind) return std::string(named.name);
  }
  return format_cpu_list(policy.cpus);
}

Placement place_ranks(const Topology& topology, int ranks, const PlacementPolicy& policy,
                      const std::vector<int>& taken) {
  if (ranks < 1)
    return failed(fmt::format("placement: ranks is {}; allowed are 1 and more", ranks));
  if (policy.kind != Kind::listed && !policy.cpus.empty()) {
    return failed(
        fmt::format("placement: CPUs {} are listed, kind is {}; allowed for an explicit "
                    "placement only",
                    format_cpu_list(policy.cpus), static_cast<int>(policy.kind)));
  }
  switch (policy.kind) {
    case Kind::compact:
      return seat(ranks, compact(topology, ranks, cores_of(topology, taken)));
    case Kind::scatter:
      return seat(ranks, scatter(topology, cores_of(topology, taken)));
    case Kind::one_per_node:
      return place_one_per_node(topology, ranks);
    case Kind::listed:
      return place_explicit(topology, ranks, policy.cpus);
    case Kind::none: {
      Placement placement;
      placement.ranks.resize(static_cast<std::size_t>(ranks));
      placement.oversubscribed = static_cast<std::size_t>(ranks) > topology.cpus().size();
      return placement;
    }
  }
  return failed(fmt::format("placement: kind is {}; allowed are 0 to {}",
                            static_cast<int>(policy.kind), static_cast<int>(Kind::none)));
}

namespace {

// g if the ids come in runs of g equal ones, each id in one run; otherwise 0.
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

namespace {

Enforcement refuse(const char* key, int error, const std::string& why) {
  warn_once(key, why);
  return Enforcement::refusal(error, why);
}

std::string cpus_of_thread() {
  const std::vector<int> cpus = allowed_cpus();
  return cpus.empty() ? "runs where the kernel puts it" : "runs on CPUs " + format_cpu_list(cpus);
}

}  // namespace

Enforcement pin_calling_thread(int cpu, const std::vector<int>& fallback) noexcept {
  if (cpu < 0) return {};
  // If the kernel does not report our CPUs, a pin could leave them, and its effect could not be
  // checked.
  if (const int error = affinity_error(); error != 0) {
    try {
      return refuse("numa.pin", error,
                    fmt::format("thread not pinned to CPU {}: sched_getaffinity: {}; {}", cpu,
                                std::strerror(error), cpus_of_thread()));
    } catch (...) {
      return Enforcement::refusal(error, "sched_getaffinity refused");
    }
  }
  std::vector<int> before;
  try {
    before = cpus_before_pin();
  } catch (...) {  // no memory: the CPUs are not remembered
  }
  // An unknown CPU number makes an empty mask, which is also EINVAL.
  const int error = set_allowed_cpus(&cpu, 1);
  try {
    // Some sandboxes accept the call and do nothing, so look.
    if (error == 0 && allowed_cpus() == std::vector<int>{cpu}) {
      if (!before.empty()) remember_pin(cpu, std::move(before));
      return Enforcement::done();
    }
    if (!fallback.empty()) set_allowed_cpus(fallback.data(), static_cast<int>(fallback.size()));
    const std::string cause = error == 0 ? "accepted but without effect" : std::strerror(error);
    return refuse("numa.pin", error,
                  fmt::format("thread not pinned to CPU {}: sched_setaffinity: {}; {}", cpu, cause,
                              cpus_of_thread()));
  } catch (...) {  // no memory for the text; the mask decides
    return error == 0 ? Enforcement::done()
                      : Enforcement::refusal(error, "sched_setaffinity refused");
  }
}

Enforcement pin_calling_thread(const Topology& topology, const RankPlace& place) noexcept {
  if (place.cpu < 0) return {};
  try {
    if (!topology.is_this_system()) {
      return refuse(
          "numa.foreign_topology", 0,
          fmt::format("threads not pinned: the topology does not describe this machine ({})",
                      topology.source()));
    }
    return pin_calling_thread(place.cpu, topology.os_cpus());
  } catch (...) {
    return topology.is_this_system()
               ? pin_calling_thread(place.cpu)
               : Enforcement::refusal(0, "the topology does not describe this machine");
  }
}

void move_calling_thread(int cpu) noexcept {
  try {
    const std::vector<int> cpus = allowed_cpus();
    if (cpus.empty() || set_allowed_cpus(&cpu, 1) != 0) return;
    set_allowed_cpus(cpus.data(), static_cast<int>(cpus.size()));
  } catch (...) {  // no memory: the thread stays
  }
}

namespace {

bool may_bind(const Topology& topology) {
  return topology.is_this_system() && topology.knows_nodes();
}

}  // namespace

ArenaOptions arena_options(const Topology& topology, const RankPlace& place) {
  ArenaOptions options;
  if (may_bind(topology) && place.node >= 0) options.node = place.node;
  return options;
}

ArenaOptions interleaved_options(const Topology& topology, const std::vector<RankPlace>& places) {
  ArenaOptions options;
  options.huge_pages = false;
  if (!may_bind(topology)) return options;
  for (const RankPlace& place : places) {
    if (place.node >= 0 && place.node < kMaxNodes) {
      options.interleave.set(static_cast<std::size_t>(place.node));
    }
  }
  return options;
}

RankReport make_rank_report(int rank, const Topology& topology, const RankPlace& place,
                            const Enforcement& pin) {
  RankReport report;
  report.rank = rank;
  report.place = place;
  report.pin = pin;
  if (!may_bind(topology) && place.node >= 0) {
    report.binding = Enforcement::refusal(
        0, topology.is_this_system()
               ? "memory not bound: the machine's memory nodes are not known"
               : "memory not bound: the topology does not describe this machine");
  }
  return report;
}

std::string to_string(const RankReport& report) {
  std::string text = fmt::format("rank {}: ", report.rank);
  if (report.place.cpu == kNotPlaced) {
    text += "not placed";
  } else {
    text += fmt::format("cpu {}, node {}", report.place.cpu, report.place.node);
    if (report.place.core_shared) text += ", core shared";
  }
  for (const Enforcement* part :
       {&report.pin, &report.binding, &report.huge_pages, &report.locking}) {
    if (part->refused()) text += fmt::format("; {}", part->why());
  }
  return text;
}

}  // namespace rankine
