#include <nlohmann/json.hpp>

#include "engine/tools/memory.h"
#include "engine/tools/topo_view.h"

namespace rankine::tools {
namespace {

using Json = nlohmann::ordered_json;

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

}  // namespace rankine::tools
