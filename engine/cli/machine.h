// MachineReport is the machine as reports name it. This header also declares teams for
// measurements, costs as text, and the view of `rankine topo`.
#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/communicator.h"
#include "engine/api/team.h"
#include "engine/api/version.h"
#include "engine/base/costs.h"
#include "engine/base/files.h"
#include "numa/cpus.h"
#include "numa/memory.h"
#include "numa/placement.h"
#include "numa/topology.h"

namespace rankine {
struct CachedPlan;
struct Environment;
class TuningTable;
}  // namespace rankine

namespace rankine::tools {

struct MachineReport {
  std::string host;
  std::string cpu;  // "AMD EPYC 9B45", or "unknown CPU"
  Topology topology = Topology::flat({}, false);
  CpuBudget budget{};
  std::string isa;  // instruction set of the kernels in use: "avx512_bf16"
};

// Must be called before any pinning: the calling thread's affinity counts.
MachineReport read_machine();

// "cpus 0-1", "64 ranks on cpus 0-1", "not pinned".
std::string describe_placement(const std::vector<RankReport>& ranks);

// The machine's refusals, one line each; ranks with equal refusals share a line.
std::vector<std::string> refusals(const std::vector<RankReport>& ranks);

std::string utc_now();    // "2026-11-20T14:03:07Z"
std::string local_now();  // "2026-11-20 14:03:07", in the zone of TZ

// The plan of a first call among threads of one node, without levels. `tuning` may be nullptr;
// `ports` 0: no limit. `algorithms` as in CommunicatorOptions.
Result<std::unique_ptr<CachedPlan>> plan_among(int ranks, const Call& call, const Costs& costs,
                                               const Environment& environment,
                                               const TuningTable* tuning, int ports,
                                               std::span<const GivenAlgorithm> algorithms = {});

// Makes a team for measuring this machine or for a separate clock: it refuses the network that
// RANKINE_NETWORK may name for programs, so that model time is not mistaken for real time. A
// network of `options` is allowed; the measurement then names it.
inline Result<std::unique_ptr<Team>> machine_team(const TeamOptions& options) {
  const char* const network = environment_variable("RANKINE_NETWORK");
  if (network != nullptr && options.network == nullptr) {
    return invalid_argument("environment variable RANKINE_NETWORK is '" + std::string(network) +
                            "', for calls of programs; this works on the machine itself: unset it "
                            "(perf has --network in its place)");
  }
  return Team::create(options);
}

inline void raise_to(PortsInUse& most, const PortsInUse& used) {
  most.most_sent = std::max(most.most_sent, used.most_sent);
  most.most_received = std::max(most.most_received, used.most_received);
}

// Raises `most`, by rank, to the counts of the communicator.
inline void add_ports_in_use(const Communicator& communicator, std::vector<PortsInUse>& most) {
  most.resize(static_cast<std::size_t>(communicator.ranks()));
  for (std::size_t r = 0; r < most.size(); ++r) {
    raise_to(most[r], communicator.ports_in_use(static_cast<Rank>(r)));
  }
}

// "most_sent": [2, 1], "most_received": [1, 2], by rank.
template <class Json>
void write_ports_in_use(const std::vector<PortsInUse>& most, Json& json) {
  json["most_sent"] = json["most_received"] = Json::array();
  for (const PortsInUse& one : most) {
    json["most_sent"].push_back(one.most_sent);
    json["most_received"].push_back(one.most_received);
  }
}

// "2 sending, 1 receiving", the most over all ranks.
inline std::string ports_in_words(const std::vector<PortsInUse>& most) {
  PortsInUse all;
  for (const PortsInUse& one : most) raise_to(all, one);
  return std::to_string(all.most_sent) + " sending, " + std::to_string(all.most_received) +
         " receiving";
}

// "4 KiB", "256 ranks": bytes as sizes, other values with their unit.
std::string value_text(const CostField& field, std::size_t value);

// The memory that a communicator holds for one rank, and the nodes on which its pages lie.
struct RankMemoryView {
  RankMemory memory;
  Residency lines, mailboxes, scratch;

  Residency all() const {
    Residency sum = lines;
    sum.add(mailboxes);
    sum.add(scratch);
    return sum;
  }
};

// A trial of memory that all ranks read (Team::staging).
struct StagingView {
  NodeSet nodes;  // requested; none: first touch
  Enforcement binding;
  Residency where;
};

// The findings of `rankine topo`: the machine, the planned places of ranks, and the real places of
// a team, for the text, the JSON and the picture.
struct TopoView {
  const Topology& topology;
  int ranks = 0;
  PlacementPolicy policy;
  Placement placement;

  // The findings with a real team; absent for a synthetic machine.
  struct Real {
    MachineReport machine;
    std::vector<RankReport> report;
    std::string waiting;
    std::size_t memory_idle = 0, memory_used = 0;  // bytes of the communicator
    SharedMemory shared;                           // after use
    std::vector<RankMemoryView> memory;            // by rank, after use
    StagingView staging;
    Costs costs;                    // used by calls on this machine
    std::string table, table_made;  // source of the costs; empty: defaults
  };
  std::optional<Real> real;

  // Ranks placed on a CPU, and ranks with memory placed on a node.
  std::vector<int> ranks_on_cpu(int cpu) const;
  std::vector<int> ranks_on_node(int node) const;
  // Bytes of a rank's pages on other nodes than the requested one.
  std::size_t misplaced_bytes(int rank) const;
};

// "node 2  64 GiB  memory only": nodes missing in a drawing of CPUs.
std::vector<std::string> nodes_without_cpus(const Topology& topology);

// Text for a terminal, and JSON.
void print(const TopoView& view, std::ostream& out);
nlohmann::ordered_json to_json(const TopoView& view);

// A self-contained picture: packages, nodes, caches and cores with the ranks on them, and the
// ranks' memory in its node.
std::string to_svg(const TopoView& view);

}  // namespace rankine::tools
