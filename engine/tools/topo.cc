#include "engine/tools/topo.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <ostream>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/api/team.h"
#include "engine/tools/machine.h"
#include "engine/tools/memory.h"
#include "engine/tools/text.h"
#include "numa/cpu_list.h"

namespace rankine::tools {
namespace {

// Everything that the report shows.
struct View {
  const Topology& topology;
  int ranks = 0;
  Placement placement;
  // Of a team that was made; absent for a synthetic machine.
  struct Real {
    Machine machine;
    std::vector<RankReport> report;
    std::string waiting;
    std::size_t memory_idle = 0, memory_used = 0;  // bytes of the communicator
  };
  std::optional<Real> real;
};

// Small and large calls on both transports, so that mailboxes, scratch and plans are there.
Status use(Team& team) {
  constexpr std::size_t kSmall = 64, kLarge = 16 * 1024;
  Status status = team.run([](Member& me) {
    std::vector<float> in(kLarge), out(kLarge);
    for (const Transport transport : {Transport::mailbox, Transport::direct}) {
      for (const std::size_t count : {kSmall, kLarge}) {
        const CallOptions options{.transport = transport};
        me.all_reduce(std::span<const float>(in.data(), count), std::span<float>(out.data(), count),
                      ReduceOp::sum, options)
            .throw_if_error();
      }
    }
  });
  return status;
}

Result<View::Real> try_out(int ranks, const PlacementPolicy& policy) {
  View::Real real;
  real.machine = read_machine();
  auto team = Team::create({.ranks = ranks, .placement = policy});
  if (!team.ok()) return team.status();
  Communicator& communicator = (*team)->communicator();
  real.report = (*team)->report();
  real.waiting = to_string(communicator.wait_policy());
  real.memory_idle = communicator.memory_bytes();
  if (Status status = use(**team); !status.ok()) return status;
  real.memory_used = communicator.memory_bytes();
  return real;
}

std::vector<int> ranks_on(const Placement& placement, int cpu) {
  std::vector<int> ranks;
  for (std::size_t r = 0; r < placement.ranks.size(); ++r) {
    if (placement.ranks[r].cpu == cpu) ranks.push_back(static_cast<int>(r));
  }
  return ranks;
}

std::string rank_text(const std::vector<int>& ranks) {
  if (ranks.empty()) return "";
  return fmt::format(" <- {} {}", ranks.size() == 1 ? "rank" : "ranks", format_cpu_list(ranks));
}

// Packages, nodes, caches and cores as an indented tree. CPUs stand in the machine's order, so a
// new line begins wherever a number changes.
std::string tree(const View& view) {
  const Topology& topology = view.topology;
  std::string out;
  const Cpu* last = nullptr;
  const auto size = [](std::size_t bytes) {
    return bytes == 0 ? std::string() : "  " + format_bytes(static_cast<double>(bytes));
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
      std::vector<int> here;
      for (std::size_t r = 0; r < view.placement.ranks.size(); ++r) {
        if (view.placement.ranks[r].node == cpu.numa_node) here.push_back(static_cast<int>(r));
      }
      out += fmt::format("  node {}{}{}\n", cpu.numa_node,
                         home == nullptr ? "" : size(home->memory_bytes),
                         here.empty() || !topology.knows_nodes()
                             ? ""
                             : fmt::format("  memory of {} {}", here.size() == 1 ? "rank" : "ranks",
                                           format_cpu_list(here)));
    }
    if (l3) out += fmt::format("    L3 {}{}\n", cpu.l3, size(topology.caches().l3));
    if (core) out += fmt::format("      core {}", cpu.core);
    out += fmt::format("{}cpu {}{}", core ? "  " : ", ", cpu.os_index,
                       rank_text(ranks_on(view.placement, cpu.os_index)));
    last = &cpu;
  }
  out += '\n';
  for (const NumaNode& node : topology.nodes()) {
    if (node.cpus.empty()) {
      out += fmt::format("node {}{}  memory only\n", node.os_index, size(node.memory_bytes));
    }
  }
  return out;
}

void print(const View& view, const TopoOptions& options, Console& console) {
  const Topology& topology = view.topology;
  const auto bytes = [](std::size_t n) {
    return n == 0 ? std::string("unknown") : format_bytes(static_cast<double>(n));
  };
  std::ostream& out = console.out;
  const auto line = [&out](std::string_view name, const std::string& text) {
    out << fmt::format("{:<11}: {}\n", name, text);
  };
  if (view.real) line("machine", view.real->machine.host + ", " + view.real->machine.cpu);
  line("topology", topology.summary());
  line("caches",
       fmt::format("L1d {}, L2 {}, L3 {}; pages {}, huge pages {}", bytes(topology.caches().l1d),
                   bytes(topology.caches().l2), bytes(topology.caches().l3),
                   bytes(topology.page_bytes()), bytes(topology.huge_page_bytes())));
  if (view.real) {
    const Machine& machine = view.real->machine;
    line("cores", machine.budget.why);
    if (machine.budget.quota) {
      line("quota", fmt::format("{:g} cores, by {}", machine.budget.quota->cores,
                                machine.budget.quota->file));
    }
    const AvailableMemory memory = available_memory();
    line("memory", fmt::format("{} available ({})", format_bytes(static_cast<double>(memory.bytes)),
                               memory.why));
    line("kernels", machine.isa);
  }
  line("ranks", fmt::format("{}, {}{}", view.ranks, to_string(options.placement),
                            view.placement.oversubscribed ? ", more than CPUs" : ""));
  if (view.real) {
    line("waiting", view.real->waiting);
    line("per comm", fmt::format("{} when made, {} after all_reduce of 256 B and 64 KiB on both "
                                 "transports",
                                 format_bytes(static_cast<double>(view.real->memory_idle)),
                                 format_bytes(static_cast<double>(view.real->memory_used))));
    const std::vector<std::string> refused = refusals(view.real->report);
    line("enforced", refused.empty() ? "all that was asked for" : "not everything");
    for (const std::string& text : refused) line("  refused", text);
  } else {
    line("enforced", "nothing: this is not our machine");
  }
  out << "\n" << tree(view);
  if (options.placement.kind == PlacementPolicy::Kind::kNone) {
    out << fmt::format("ranks 0-{} run anywhere\n", view.ranks - 1);
  }
}

nlohmann::ordered_json enforcement_json(const Enforcement& wish) {
  if (wish.refused()) return {{"state", "refused"}, {"errno", wish.error}, {"why", wish.why()}};
  return {{"state", wish.enforced() ? "enforced" : "not_asked"}};
}

void print_json(const View& view, const TopoOptions& options, Console& console) {
  using Json = nlohmann::ordered_json;
  const Topology& topology = view.topology;
  Json json;
  json["topology"] = {
      {"source", topology.source()},         {"is_this_system", topology.is_this_system()},
      {"packages", topology.packages()},     {"nodes", topology.nodes().size()},
      {"l3_groups", topology.l3_groups()},   {"cores", topology.cores()},
      {"cpus", topology.cpus().size()},      {"l1d_bytes", topology.caches().l1d},
      {"l2_bytes", topology.caches().l2},    {"l3_bytes", topology.caches().l3},
      {"page_bytes", topology.page_bytes()}, {"huge_page_bytes", topology.huge_page_bytes()}};
  Json& nodes = json["nodes"] = Json::array();
  for (const NumaNode& node : topology.nodes()) {
    nodes.push_back(
        {{"node", node.os_index}, {"memory_bytes", node.memory_bytes}, {"cpus", node.cpus}});
  }
  Json& cpus = json["cpus"] = Json::array();
  for (const Cpu& cpu : topology.cpus()) {
    cpus.push_back({{"cpu", cpu.os_index},
                    {"core", cpu.core},
                    {"package", cpu.package},
                    {"node", cpu.numa_node},
                    {"l3", cpu.l3},
                    {"smt", cpu.smt_index},
                    {"ranks", ranks_on(view.placement, cpu.os_index)}});
  }
  json["placement"] = to_string(options.placement);
  json["oversubscribed"] = view.placement.oversubscribed;
  Json& ranks = json["ranks"] = Json::array();
  for (std::size_t r = 0; r < view.placement.ranks.size(); ++r) {
    const RankPlace& place = view.placement.ranks[r];
    Json rank = {
        {"rank", r}, {"cpu", place.cpu}, {"node", place.node}, {"core_shared", place.core_shared}};
    if (view.real) {
      const RankReport& report = view.real->report[r];
      rank["pin"] = enforcement_json(report.pin);
      rank["binding"] = enforcement_json(report.binding);
      rank["huge_pages"] = enforcement_json(report.huge_pages);
    }
    ranks.push_back(std::move(rank));
  }
  if (view.real) {
    const Machine& machine = view.real->machine;
    const AvailableMemory memory = available_memory();
    json["machine"] = {{"host", machine.host}, {"cpu", machine.cpu}, {"isa", machine.isa}};
    json["cores"] = {{"usable", machine.budget.cores},
                     {"affinity", machine.budget.affinity.cores},
                     {"hardware_threads", machine.budget.cpus},
                     {"quota", nullptr},
                     {"why", machine.budget.why}};
    if (machine.budget.quota) json["cores"]["quota"] = machine.budget.quota->cores;
    json["waiting"] = view.real->waiting;
    json["communicator"] = {{"bytes_when_made", view.real->memory_idle},
                            {"bytes_after_use", view.real->memory_used}};
    json["memory_available"] = memory.bytes;
  }
  console.out << json.dump(2) << "\n";
}

}  // namespace

Result<Exit> topo(const TopoOptions& options, Console& console) {
  const Topology topology = options.synthetic ? *options.synthetic : Topology::detect();
  int ranks = options.ranks;
  if (ranks == 0) {
    ranks = std::max(2, options.synthetic ? topology.cores() : cpu_budget().cores);
    ranks = std::min(ranks, Communicator::kMaxRanks);
  }
  View view{.topology = topology,
            .ranks = ranks,
            .placement = place_ranks(topology, ranks, options.placement),
            .real = std::nullopt};
  if (!view.placement.ok()) return invalid_argument("--placement: " + view.placement.error);
  if (!options.synthetic) {
    auto real = try_out(ranks, options.placement);
    if (!real.ok()) return real.status();
    view.real = std::move(*real);
  }
  if (options.json) {
    print_json(view, options, console);
  } else {
    print(view, options, console);
  }
  return Exit::ok;
}

Subcommand add_topo(CLI::App& tool) {
  auto owned = std::make_shared<TopoOptions>();
  TopoOptions& o = *owned;
  CLI::App* app =
      tool.add_subcommand("topo", "draw the machine and where every rank and its memory goes");
  add_argument(*app, "--ranks", o.ranks, Whole{1, Communicator::kMaxRanks}, "N",
               "how many (usable cores, at least 2)");
  add_argument(*app, "--placement", o.placement, read_placement, "NAME",
               "compact, scatter, one_per_node, none or CPUs such as 0,2,4-7 (compact)");
  add_argument(
      *app, "--synthetic", o.synthetic,
      [](std::string_view argument, std::string_view text) -> Result<Topology> {
        TopologyResult parsed = Topology::synthetic(text);
        if (parsed.ok()) return std::move(*parsed.topology);
        return invalid_argument(fmt::format("{}: {}", argument, parsed.error));
      },
      "TEXT", "a machine in hwloc's notation instead of ours");
  app->add_flag("--json", o.json, "the same as JSON");
  app->footer(
      "Examples:\n"
      "  rankine topo --ranks 4 --placement scatter\n"
      "  rankine topo --ranks 32 --synthetic \"pack:2 [numa] l3:4 core:8 pu:2\"");
  return {app, [owned](Console& console) { return topo(*owned, console); }};
}

}  // namespace rankine::tools
