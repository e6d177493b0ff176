// The machine and the way ranks sit on it, as reports name them.
#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/communicator.h"
#include "engine/api/team.h"
#include "engine/api/version.h"
#include "engine/base/costs.h"
#include "engine/base/environment_variable.h"
#include "numa/cpus.h"
#include "numa/memory.h"
#include "numa/placement.h"
#include "numa/topology.h"

namespace rankine::tools {

struct MachineReport {
  std::string host;
  std::string cpu;  // "AMD EPYC 9B45", or "unknown CPU"
  Topology topology = Topology::flat({}, false);
  CpuBudget budget{};
  std::string isa;  // of the kernels that run: "avx512_bf16"
};

// To be called before anything is pinned: the calling thread's affinity counts.
MachineReport read_machine();

// "cpus 0-1", "64 ranks on cpus 0-1", "not pinned".
std::string describe_placement(const std::vector<RankReport>& ranks);

// What the machine refused, one line each; ranks with the same refusals share a line.
std::vector<std::string> refusals(const std::vector<RankReport>& ranks);

std::string utc_now();    // "2026-11-20T14:03:07Z"
std::string local_now();  // "2026-11-20 14:03:07", where TZ says

// Ranks for what measures this machine or brings its own clock: not on the network that
// RANKINE_NETWORK may name for programs, so that nobody takes model time for time. On one that
// `options` names, where whoever measures says so.

inline Result<std::unique_ptr<Team>> machine_team(const TeamOptions& options) {
  const char* const network = environment_variable("RANKINE_NETWORK");
  if (network != nullptr && options.network == nullptr) {
    return invalid_argument("environment variable RANKINE_NETWORK is '" + std::string(network) +
                            "', for calls of programs; this works on the machine itself: unset it "
                            "(perf has --network in its place)");
  }
  return Team::create(options);
}

// By rank: the most that `most` and the communicator know of.
inline void add_ports_in_use(const Communicator& communicator, std::vector<PortsInUse>& most) {
  most.resize(static_cast<std::size_t>(communicator.ranks()));
  for (std::size_t r = 0; r < most.size(); ++r) {
    const PortsInUse used = communicator.ports_in_use(static_cast<Rank>(r));
    most[r].most_sent = std::max(most[r].most_sent, used.most_sent);
    most[r].most_received = std::max(most[r].most_received, used.most_received);
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

// "2 sending, 1 receiving", of all ranks.
inline std::string ports_in_words(const std::vector<PortsInUse>& most) {
  PortsInUse all;
  for (const PortsInUse& one : most) {
    all.most_sent = std::max(all.most_sent, one.most_sent);
    all.most_received = std::max(all.most_received, one.most_received);
  }
  return std::to_string(all.most_sent) + " sending, " + std::to_string(all.most_received) +
         " receiving";
}

// Costs (engine/base/costs.h) as people read them.

// "4 KiB", "256 ranks": bytes as sizes, all else with its unit.
std::string value_text(const CostField& field, std::size_t value);

// "board_pair_read 8 KiB (16 KiB), spin 1000 nanoseconds (50000 nanoseconds)": where they differ from
// the defaults, which stand behind. Empty: nowhere.
std::string differences_text(const Costs& costs);

// What `rankine topo` found out: the machine, where ranks are meant to sit, and where a team that
// was made really went. One value for the text, the JSON and the picture.

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

// Memory for what all ranks read (Team::staging), as tried out.
struct StagingView {
  NodeSet nodes;  // asked for; none: first touch
  Enforcement binding;
  Residency where;
};

struct TopoView {
  const Topology& topology;
  int ranks = 0;
  PlacementPolicy policy;
  Placement placement;

  // Of a team that was made; absent for a synthetic machine.
  struct Real {
    MachineReport machine;
    std::vector<RankReport> report;
    std::string waiting;
    std::size_t memory_idle = 0, memory_used = 0;  // bytes of the communicator
    SharedMemory shared;                           // after use
    std::vector<RankMemoryView> memory;            // by rank, after use
    StagingView staging;
    Costs costs;                    // that calls are made with here
    std::string table, table_made;  // where they come from; empty: defaults
  };
  std::optional<Real> real;

  // Ranks that were sent to a CPU, and those whose memory was sent to a node.
  std::vector<int> ranks_on_cpu(int cpu) const;
  std::vector<int> ranks_on_node(int node) const;
  // Bytes of a rank's pages that lie on other nodes than the one that they were asked for.
  std::size_t misplaced_bytes(int rank) const;
};

// "node 2  64 GiB  memory only": what a drawing of CPUs does not show.
std::vector<std::string> nodes_without_cpus(const Topology& topology);

// For a terminal, and as JSON.
void print(const TopoView& view, std::ostream& out);
nlohmann::ordered_json to_json(const TopoView& view);

// A picture that stands on its own: packages, nodes, caches and cores with the ranks on them, and
// the ranks' memory in its node.
std::string to_svg(const TopoView& view);

}  // namespace rankine::tools
