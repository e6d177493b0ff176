#include "engine/cli/machine.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <ctime>
#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/communicator_state.h"
#include "engine/api/environment.h"
#include "engine/api/plans.h"
#include "engine/api/tuning/tuning.h"
#include "engine/base/units.h"
#include "engine/cli/question.h"
#include "engine/cli/table.h"
#include "engine/cli/text.h"
#include "engine/run/kernels/reduce.h"
#include "numa/cpus.h"

namespace rankine::tools {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

// "cpu 0", "ranks 0-3"
std::string listed(std::string_view what, const std::vector<int>& numbers) {
  return fmt::format("{}{} {}", what, numbers.size() == 1 ? "" : "s", format_cpu_list(numbers));
}

}  // namespace

MachineReport read_machine() {
  MachineReport machine;
  machine.host = host_name();
  machine.cpu = cpu_model();
  machine.topology = Topology::detect();
  machine.budget = cpu_budget();
  machine.isa = name_of(best_isa());
  return machine;
}

std::string describe_placement(const std::vector<RankReport>& ranks) {
  std::vector<int> cpus;
  for (const RankReport& rank : ranks) {
    if (rank.place.cpu == kNotPlaced || !rank.pin.enforced()) continue;
    if (std::find(cpus.begin(), cpus.end(), rank.place.cpu) == cpus.end()) {
      cpus.push_back(rank.place.cpu);
    }
  }
  if (cpus.empty()) return "not pinned";
  const std::string list = listed("cpu", cpus);
  return cpus.size() == ranks.size() ? list : fmt::format("{} ranks on {}", ranks.size(), list);
}

std::vector<std::string> refusals(const std::vector<RankReport>& ranks) {
  std::vector<std::pair<std::string, std::vector<int>>> lines;
  for (const RankReport& rank : ranks) {
    std::string what;
    const auto add = [&what](const Enforcement& wish, std::string_view text) {
      if (!wish.refused()) return;
      what += fmt::format("{}{}: {}", what.empty() ? "" : "; ", text, wish.why());
    };
    add(rank.pin, "not pinned");
    add(rank.binding, "memory not bound");
    add(rank.huge_pages, "no huge pages");
    add(rank.locking, "memory not locked");
    if (what.empty()) continue;
    const auto same = std::find_if(lines.begin(), lines.end(),
                                   [&](const auto& line) { return line.first == what; });
    if (same == lines.end()) {
      lines.push_back({std::move(what), {rank.rank}});
    } else {
      same->second.push_back(rank.rank);
    }
  }
  std::vector<std::string> out;
  for (const auto& [what, those] : lines) out.push_back(listed("rank", those) + ": " + what);
  return out;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", utc);
}

std::string local_now() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", local);
}

std::string value_text(const CostField& field, std::size_t value) {
  return field.unit == CostField::Unit::bytes ? format_bytes(value)
                                              : fmt::format("{} {}", value, name_of(field.unit));
}

namespace {

// "board_pair_read 8 KiB (16 KiB), spin 1000 nanoseconds (50000 nanoseconds)": costs that differ
// from the defaults, with the defaults in parentheses. Empty: no difference.
std::string differences_text(const Costs& costs) {
  std::string text;
  for (const CostField& field : cost_fields()) {
    const std::size_t value = costs.*field.value, standard = Costs().*field.value;
    if (value == standard) continue;
    text += fmt::format("{}{} {} ({})", text.empty() ? "" : ", ", field.name,
                        value_text(field, value), value_text(field, standard));
  }
  return text;
}

std::vector<int> ranks_with(const Placement& placement, int RankPlace::*where, int value) {
  std::vector<int> ranks;
  for (std::size_t r = 0; r < placement.ranks.size(); ++r) {
    if (placement.ranks[r].*where == value) ranks.push_back(static_cast<int>(r));
  }
  return ranks;
}

}  // namespace

std::vector<int> TopoView::ranks_on_cpu(int cpu) const {
  return ranks_with(placement, &RankPlace::cpu, cpu);
}

std::vector<int> TopoView::ranks_on_node(int node) const {
  return ranks_with(placement, &RankPlace::node, node);
}

std::size_t TopoView::misplaced_bytes(int rank) const {
  const auto r = static_cast<std::size_t>(rank);
  const int home = placement.ranks[r].node;
  if (!real || home == kNotPlaced || !topology.knows_nodes()) return 0;
  return real->memory[r].all().bytes_elsewhere(home);
}

std::vector<std::string> nodes_without_cpus(const Topology& topology) {
  const auto& nodes = topology.nodes();
  const bool sizes_known = std::any_of(nodes.begin(), nodes.end(),
                                       [](const NumaNode& node) { return node.memory_bytes > 0; });
  std::vector<std::string> lines;
  for (const NumaNode& node : nodes) {
    if (!node.cpus.empty()) continue;
    std::string what = "memory only";
    if (node.memory_bytes > 0) {
      what = format_bytes(node.memory_bytes) + "  " + what;
    } else if (sizes_known) {
      what = "no memory; CPUs near it count to another node";
    }
    lines.push_back(fmt::format("node {}  {}", node.os_index, what));
  }
  return lines;
}

namespace {

Json part_json(const MemoryPart& part, const Residency& where) {
  Json json = {{"bytes", part.bytes}, {"on_nodes", nullptr}};
  if (where.error != 0) {
    json["errno"] = where.error;
    return json;
  }
  json["on_nodes"] = Json::array();
  for (const auto& [node, bytes] : where.bytes_on_node) {
    json["on_nodes"].push_back({{"node", node}, {"bytes", bytes}});
  }
  json["untouched_bytes"] = where.untouched_bytes;
  return json;
}

Json enforcement_json(const Enforcement& wish) {
  if (wish.refused()) return {{"state", "refused"}, {"errno", wish.error}, {"why", wish.why()}};
  return {{"state", wish.enforced() ? "enforced" : "not_asked"}};
}

}  // namespace

nlohmann::ordered_json to_json(const TopoView& view) {
  const Topology& topology = view.topology;
  Json json;
  json["topology"] = {
      {"source", topology.source()},         {"is_this_system", topology.is_this_system()},
      {"packages", topology.packages()},     {"nodes", topology.nodes().size()},
      {"l3_groups", topology.l3_caches()},   {"cores", topology.cores()},
      {"cpus", topology.cpus().size()},      {"l1d_bytes", topology.caches().l1d},
      {"l2_bytes", topology.caches().l2},    {"l3_bytes", topology.caches().l3},
      {"page_bytes", topology.page_bytes()}, {"huge_page_bytes", topology.huge_page_bytes()}};
  Json& nodes = json["nodes"] = Json::array();
  for (const NumaNode& node : topology.nodes()) {
    nodes.push_back({{"node", node.os_index},
                     {"memory_bytes", node.memory_bytes},
                     {"cpus", node.cpus},
                     {"distances", node.distances}});
  }
  Json& cpus = json["cpus"] = Json::array();
  for (const Cpu& cpu : topology.cpus()) {
    cpus.push_back({{"cpu", cpu.os_index},
                    {"core", cpu.core},
                    {"package", cpu.package},
                    {"node", cpu.numa_node},
                    {"l3", cpu.has_l3 ? Json(cpu.l3) : Json()},
                    {"l1d_bytes", cpu.caches.l1d},
                    {"l2_bytes", cpu.caches.l2},
                    {"l3_bytes", cpu.caches.l3},
                    {"smt", cpu.smt_index},
                    {"ranks", view.ranks_on_cpu(cpu.os_index)}});
  }
  json["placement"] = to_string(view.policy);
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
    const MachineReport& machine = view.real->machine;
    const AvailableMemory memory = available_memory();
    json["machine"] = {{"host", machine.host}, {"cpu", machine.cpu}, {"isa", machine.isa}};
    json["cores"] = {{"usable", machine.budget.cores},
                     {"affinity", machine.budget.affinity.cores},
                     {"hardware_threads", machine.budget.cpus},
                     {"quota", nullptr},
                     {"why", machine.budget.why}};
    if (machine.budget.quota) json["cores"]["quota"] = machine.budget.quota->cores;
    Json& costs = json["costs"] = {{"table", nullptr}, {"made", nullptr}};
    if (!view.real->table.empty()) {
      costs = {{"table", view.real->table}, {"made", view.real->table_made}};
    }
    for (const CostField& field : cost_fields()) {
      costs["values"][std::string(field.name)] = view.real->costs.*field.value;
    }
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
  return json;
}

namespace {

std::string rank_text(const std::vector<int>& ranks) {
  return ranks.empty() ? "" : " <- " + listed("rank", ranks);
}

// Packages, nodes, caches and cores as an indented tree. CPUs stand in the machine's order, so each
// change of a number begins a new line.
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
      out += fmt::format(
          "  node {}{}{}\n", cpu.numa_node, home == nullptr ? "" : size(home->memory_bytes),
          here.empty() || !topology.knows_nodes() ? "" : "  memory of " + listed("rank", here));
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

// "node 0: 12 KiB, node 1: 4 KiB"; untouched pages have no node.
std::string where_text(const Residency& where) {
  if (where.error != 0) return to_string(where);
  std::string text;
  for (const auto& [node, bytes] : where.bytes_on_node) {
    text += fmt::format("{}node {}: {}", text.empty() ? "" : ", ", node, format_bytes(bytes));
  }
  return text.empty() ? "nowhere yet" : text;
}

// A row for each rank: its memory, and the real nodes of its pages.
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
      text = "interleaved over " + listed("node", nodes);
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
    line("enforced", "nothing: this is a synthetic machine");
  }
  out << "\n" << tree(view);
  if (view.real) out << "\n" << memory_table(view);
  if (view.policy.kind == PlacementPolicy::Kind::none) {
    out << fmt::format("ranks 0-{} run anywhere\n", view.ranks - 1);
  }
}

Result<std::unique_ptr<CachedPlan>> plan_among(int ranks, const Call& call, const Costs& costs,
                                               const Environment& environment,
                                               const TuningTable* tuning, int ports,
                                               std::span<const GivenAlgorithm> algorithms) {
  const std::vector<int> levels;
  const std::function<Status()> may_go_on;
  const MailboxShape mail = mailbox_shape(ranks);
  const PlanMaker maker{.ranks = ranks,
                        .costs = costs,
                        .forced = environment,
                        .slot_payload = payload_of(mail.stride),
                        .mailbox_capacity = static_cast<int>(mail.slots / 2),
                        .ports = ports,
                        .most_plan_bytes = CommunicatorOptions{}.plan_bytes,
                        .levels = levels,
                        .algorithms = algorithms,
                        .tuning = tuning,
                        .may_go_on = may_go_on};
  return maker.make(PlanKey(call));
}

}  // namespace rankine::tools
