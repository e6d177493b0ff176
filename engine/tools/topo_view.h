// What `rankine topo` found out: the machine, where ranks are meant to sit, and where a team that
// was made really went. One value for the text, the JSON and the picture.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/api/communicator.h"
#include "engine/base/costs.h"
#include "engine/tools/machine.h"
#include "numa/memory.h"
#include "numa/placement.h"
#include "numa/topology.h"

namespace rankine::tools {

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
