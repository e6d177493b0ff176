#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "engine/base/units.h"
#include "engine/tools/cost_text.h"
#include "engine/tools/memory.h"
#include "engine/tools/table.h"
#include "engine/tools/topo_view.h"
#include "numa/cpus.h"

namespace rankine::tools {
namespace {

std::string rank_text(const std::vector<int>& ranks) {
  if (ranks.empty()) return "";
  return fmt::format(" <- {} {}", ranks.size() == 1 ? "rank" : "ranks", format_cpu_list(ranks));
}

// Packages, nodes, caches and cores as an indented tree. CPUs stand in the machine's order, so a
// new line begins wherever a number changes.
std::string tree(const TopoView& view) {
  const Topology& topology = view.topology;
  std::string out;
  const Cpu* last = nullptr;
  const auto size = [](std::size_t bytes) {
    return bytes == 0 ? std::string() : "  " + format_bytes(bytes);
  };
  for (const Cpu& cpu : topology.cpus()) {
    const bool package = last == nullptr || last->package != cpu.package;
    const bool node = package || last->numa_node != cpu.numa_node;
    const bool l3 = node || last->l3 != cpu.l3;
    const bool core = l3 || last->core != cpu.core;
    if (core && last != nullptr) out += '\n';
    if (package) out += fmt::format("package {}\n", cpu.package);
    if (node) {
      const NumaNode* home = topology.find_node(cpu.numa_node);
      const std::vector<int> here = view.ranks_on_node(cpu.numa_node);
      out += fmt::format("  node {}{}{}\n", cpu.numa_node,
                         home == nullptr ? "" : size(home->memory_bytes),
                         here.empty() || !topology.knows_nodes()
                             ? ""
                             : fmt::format("  memory of {} {}", here.size() == 1 ? "rank" : "ranks",
                                           format_cpu_list(here)));
    }
    if (l3) {
      out += cpu.has_l3 ? fmt::format("    L3 {}{}\n", cpu.l3, size(cpu.caches.l3)) : "    no L3\n";
    }
    if (core) out += fmt::format("      core {}", cpu.core);
    out += fmt::format("{}cpu {}{}", core ? "  " : ", ", cpu.os_index,
                       rank_text(view.ranks_on_cpu(cpu.os_index)));
    last = &cpu;
  }
  out += '\n';
  for (const std::string& line : nodes_without_cpus(topology)) out += line + "\n";
  return out;
}

// "32 KiB", or "16 MiB and 8 MiB" if CPUs differ.
std::string sizes_text(const Topology& topology, std::size_t CacheSizes::*cache) {
  std::vector<std::size_t> sizes;
  std::string text;
  for (const Cpu& cpu : topology.cpus()) {
    const std::size_t bytes = cpu.caches.*cache;
    const bool is_told = bytes != 0 || cache != &CacheSizes::l3 || cpu.has_l3;
    if (!is_told || std::count(sizes.begin(), sizes.end(), bytes) != 0) continue;
    text += (sizes.empty() ? "" : " and ") + (bytes == 0 ? "unknown" : format_bytes(bytes));
    sizes.push_back(bytes);
  }
  return text;
}

// "node 0: 12 KiB, node 1: 4 KiB"; pages that nobody has touched yet lie nowhere.
std::string where_text(const Residency& where) {
  if (where.error != 0) return to_string(where);
  std::string text;
  for (const auto& [node, bytes] : where.bytes_on_node) {
    text += fmt::format("{}node {}: {}", text.empty() ? "" : ", ", node, format_bytes(bytes));
  }
  return text.empty() ? "nowhere yet" : text;
}

// A row for each rank: its memory, and where the pages of it really are.
std::string memory_table(const TopoView& view) {
  Table table("rank", as::number("cpu", "", "any"), as::number("node", "", "any"),
              as::bytes("lines"), as::bytes("mailboxes"), "from", as::bytes("scratch"),
              as::text("pages lie on"));
  const auto number = [](int n) { return n == kNotPlaced ? Cell() : Cell(n); };
  for (int r = 0; r < view.ranks; ++r) {
    const RankPlace& place = view.placement.ranks[static_cast<std::size_t>(r)];
    const RankMemoryView& rank = view.real->memory[static_cast<std::size_t>(r)];
    const RankMemory& memory = rank.memory;
    const std::size_t misplaced = view.misplaced_bytes(r);
    table.add(
        r, number(place.cpu), view.topology.knows_nodes() ? number(place.node) : Cell(),
        memory.lines.bytes, memory.mailboxes.bytes, memory.senders, memory.scratch.bytes,
        where_text(rank.all()) +
            (misplaced > 0 ? fmt::format("; {} not on its node", format_bytes(misplaced)) : ""));
  }
  return to_text(table);
}

std::string staging_text(const StagingView& staging) {
  std::vector<int> nodes;
  for (int node = 0; node < kMaxNodes; ++node) {
    if (staging.nodes[static_cast<std::size_t>(node)]) nodes.push_back(node);
  }
  std::string text;
  switch (staging.binding.state) {
    case Enforcement::State::not_asked:
      text = "first touch decides";
      break;
    case Enforcement::State::refused:
      text = staging.binding.why();
      break;
    case Enforcement::State::enforced:
      text = fmt::format("interleaved over {} {}", nodes.size() == 1 ? "node" : "nodes",
                         format_cpu_list(nodes));
  }
  return fmt::format("{}; tried: {}", text, where_text(staging.where));
}

std::string costs_text(const TopoView::Real& real) {
  if (real.table.empty()) return "defaults; 'rankine tune' measures this machine's";
  const std::string differences = differences_text(real.costs);
  return fmt::format("{}, table of {}: {}", differences.empty() ? "as the defaults" : differences,
                     real.table_made, real.table);
}

}  // namespace

void print(const TopoView& view, std::ostream& out) {
  const Topology& topology = view.topology;
  const auto bytes = [](std::size_t n) {
    return n == 0 ? std::string("unknown") : format_bytes(n);
  };
  const auto line = [&out](std::string_view name, const std::string& text) {
    out << fmt::format("{:<11}: {}\n", name, text);
  };
  if (view.real) line("machine", view.real->machine.host + ", " + view.real->machine.cpu);
  line("topology", topology.summary());
  line("caches",
       fmt::format("L1d {}, L2 {}, L3 {}; pages {}, huge pages {}",
                   sizes_text(topology, &CacheSizes::l1d), sizes_text(topology, &CacheSizes::l2),
                   topology.l3_caches() == 0 ? "none" : sizes_text(topology, &CacheSizes::l3),
                   bytes(topology.page_bytes()), bytes(topology.huge_page_bytes())));
  if (view.real) {
    const MachineReport& machine = view.real->machine;
    line("cores", machine.budget.why);
    if (machine.budget.quota) {
      line("quota", fmt::format("{:g} cores, by {}", machine.budget.quota->cores,
                                machine.budget.quota->file));
    }
    const AvailableMemory memory = available_memory();
    line("memory", fmt::format("{} available ({})", format_bytes(memory.bytes), memory.why));
    line("kernels", machine.isa);
  }
  line("ranks", fmt::format("{}, {}{}", view.ranks, to_string(view.policy),
                            view.placement.oversubscribed ? ", more than CPUs" : ""));
  if (view.real) {
    line("costs", costs_text(*view.real));
    line("waiting", view.real->waiting);
    line("per comm",
         fmt::format("{} when made, {} after all_reduce of 256 B and 64 KiB on both "
                     "transports",
                     format_bytes(view.real->memory_idle), format_bytes(view.real->memory_used)));
    const SharedMemory& shared = view.real->shared;
    line("  for all", fmt::format("plans {}, flight record {}, tables {}; the rest below",
                                  format_bytes(shared.plans), format_bytes(shared.flight_record),
                                  format_bytes(shared.tables)));
    line("staging", staging_text(view.real->staging));
    const std::vector<std::string> refused = refusals(view.real->report);
    line("enforced", refused.empty() ? "all that was asked for" : "not everything");
    for (const std::string& text : refused) line("  refused", text);
  } else {
    line("enforced", "nothing: this is not our machine");
  }
  out << "\n" << tree(view);
  if (view.real) out << "\n" << memory_table(view);
  if (view.policy.kind == PlacementPolicy::Kind::none) {
    out << fmt::format("ranks 0-{} run anywhere\n", view.ranks - 1);
  }
}

}  // namespace rankine::tools
