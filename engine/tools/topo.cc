#include "engine/tools/topo.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <ostream>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/api/team.h"
#include "engine/base/replace_file.h"
#include "engine/tools/machine.h"
#include "engine/tools/memory.h"
#include "engine/tools/table.h"
#include "engine/tools/text.h"
#include "engine/tools/topo_view.h"
#include "numa/cpu_list.h"
#include "numa/pages.h"

namespace rankine::tools {
namespace {

// Small and large calls on all transports, so that mailboxes, boards, scratch and plans are there.
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
    me.all_reduce(std::span<const float>(in.data(), 1), std::span<float>(out.data(), 1))
        .throw_if_error();
  });
  return status;
}

Residency residency_of(const MemoryPart& part) {
  Residency sum;
  for (const MemoryRange& range : part.ranges) sum.add(rankine::residency_of(range));
  return sum;
}

// A page for every node in use, touched, so that one can see where they went.
StagingView try_staging(Team& team, const Placement& placement) {
  StagingView view;
  for (const RankPlace& place : placement.ranks) {
    if (place.node >= 0 && place.node < kMaxNodes) {
      view.nodes.set(static_cast<std::size_t>(place.node));
    }
  }
  const std::size_t bytes = std::max<std::size_t>(1, view.nodes.count()) * page_bytes();
  if (void* const memory = team.staging().allocate(bytes, page_bytes())) {
    std::memset(memory, 1, bytes);
    view.where = rankine::residency_of(MemoryRange{memory, bytes});
  }
  view.binding = team.staging().binding();
  return view;
}

Result<TopoView::Real> try_out(const TopoOptions& options, int ranks, const Placement& placement) {
  TopoView::Real real;
  real.machine = read_machine();
  auto team = Team::create(
      {.ranks = ranks, .placement = options.placement, .lock_memory = options.lock_memory});
  if (!team.ok()) return team.status();
  Communicator& communicator = (*team)->communicator();
  real.waiting = to_string(communicator.wait_policy());
  real.memory_idle = communicator.memory_bytes();
  if (Status status = use(**team); !status.ok()) return status;
  real.memory_used = communicator.memory_bytes();
  real.report = (*team)->report();
  real.shared = communicator.shared_memory();
  for (Rank r = 0; r < ranks; ++r) {
    RankMemory memory = communicator.memory_of(r);
    RankMemoryView view{{},
                        residency_of(memory.lines),
                        residency_of(memory.mailboxes),
                        residency_of(memory.scratch)};
    view.memory = std::move(memory);
    real.memory.push_back(std::move(view));
  }
  real.staging = try_staging(**team, placement);
  return real;
}

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
    if (l3) out += fmt::format("    L3 {}{}\n", cpu.l3, size(topology.caches().l3));
    if (core) out += fmt::format("      core {}", cpu.core);
    out += fmt::format("{}cpu {}{}", core ? "  " : ", ", cpu.os_index,
                       rank_text(view.ranks_on_cpu(cpu.os_index)));
    last = &cpu;
  }
  out += '\n';
  for (const std::string& line : nodes_without_cpus(topology)) out += line + "\n";
  return out;
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
  std::vector<std::vector<std::string>> rows = {
      {"rank", "cpu", "node", "lines", "mailboxes", "from", "scratch", "pages lie on"}};
  const auto number = [](int n) {
    return n == kNotPlaced ? std::string("any") : std::to_string(n);
  };
  for (int r = 0; r < view.ranks; ++r) {
    const RankPlace& place = view.placement.ranks[static_cast<std::size_t>(r)];
    const RankMemoryView& rank = view.real->memory[static_cast<std::size_t>(r)];
    const RankMemory& memory = rank.memory;
    const std::size_t misplaced = view.misplaced_bytes(r);
    rows.push_back(
        {std::to_string(r), number(place.cpu),
         view.topology.knows_nodes() ? number(place.node) : "any", format_bytes(memory.lines.bytes),
         format_bytes(memory.mailboxes.bytes), std::to_string(memory.senders),
         format_bytes(memory.scratch.bytes),
         where_text(rank.all()) +
             (misplaced > 0 ? fmt::format("; {} not on its node", format_bytes(misplaced)) : "")});
  }
  return columns(rows, "rrrrrrr");
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

void print(const TopoView& view, const TopoOptions& options, Console& console) {
  const Topology& topology = view.topology;
  const auto bytes = [](std::size_t n) {
    return n == 0 ? std::string("unknown") : format_bytes(n);
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
    line("memory", fmt::format("{} available ({})", format_bytes(memory.bytes), memory.why));
    line("kernels", machine.isa);
  }
  line("ranks", fmt::format("{}, {}{}", view.ranks, to_string(options.placement),
                            view.placement.oversubscribed ? ", more than CPUs" : ""));
  if (view.real) {
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
  if (options.placement.kind == PlacementPolicy::Kind::none) {
    out << fmt::format("ranks 0-{} run anywhere\n", view.ranks - 1);
  }
}

nlohmann::ordered_json part_json(const MemoryPart& part, const Residency& where) {
  nlohmann::ordered_json json = {{"bytes", part.bytes}, {"on_nodes", nullptr}};
  if (where.error != 0) {
    json["errno"] = where.error;
    return json;
  }
  json["on_nodes"] = nlohmann::ordered_json::array();
  for (const auto& [node, bytes] : where.bytes_on_node) {
    json["on_nodes"].push_back({{"node", node}, {"bytes", bytes}});
  }
  json["untouched_bytes"] = where.untouched_bytes;
  return json;
}

nlohmann::ordered_json enforcement_json(const Enforcement& wish) {
  if (wish.refused()) return {{"state", "refused"}, {"errno", wish.error}, {"why", wish.why()}};
  return {{"state", wish.enforced() ? "enforced" : "not_asked"}};
}

void print_json(const TopoView& view, const TopoOptions& options, Console& console) {
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
                    {"ranks", view.ranks_on_cpu(cpu.os_index)}});
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
      rank["locking"] = enforcement_json(report.locking);
      const RankMemoryView& mine = view.real->memory[r];
      rank["memory"] = {{"lines", part_json(mine.memory.lines, mine.lines)},
                        {"mailboxes", part_json(mine.memory.mailboxes, mine.mailboxes)},
                        {"scratch", part_json(mine.memory.scratch, mine.scratch)},
                        {"mailboxes_from", mine.memory.senders},
                        {"misplaced_bytes", view.misplaced_bytes(static_cast<int>(r))}};
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
    const SharedMemory& shared = view.real->shared;
    json["communicator"] = {{"bytes_when_made", view.real->memory_idle},
                            {"bytes_after_use", view.real->memory_used},
                            {"plan_bytes", shared.plans},
                            {"flight_record_bytes", shared.flight_record},
                            {"table_bytes", shared.tables}};
    const StagingView& staging = view.real->staging;
    json["staging"] = part_json({staging.where.resident_bytes(), {}}, staging.where);
    json["staging"]["interleaving"] = enforcement_json(staging.binding);
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
  TopoView view{.topology = topology,
                .ranks = ranks,
                .policy = options.placement,
                .placement = place_ranks(topology, ranks, options.placement),
                .real = std::nullopt};
  if (!view.placement.ok()) return invalid_argument("--placement: " + view.placement.error);
  if (!options.synthetic) {
    auto real = try_out(options, ranks, view.placement);
    if (!real.ok()) return real.status();
    view.real = std::move(*real);
  }
  if (!options.svg.empty()) {
    Status status = of_option("--svg", replace_file(options.svg, to_svg(view)));
    if (!status.ok()) return status;
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
  app->add_flag("--lock", o.lock_memory, "keep the engine's memory from being swapped out");
  add_text(*app, "--svg", o.svg, "FILE", "draw the same into this file");
  app->add_flag("--json", o.json, "the same as JSON");
  app->footer(
      "Examples:\n"
      "  rankine topo --ranks 4 --placement scatter --svg topo.svg\n"
      "  rankine topo --ranks 32 --synthetic \"pack:2 [numa] l3:4 core:8 pu:2\"");
  return {app, [owned](Console& console) { return topo(*owned, console); }};
}

}  // namespace rankine::tools
