// Which rank runs on which CPU.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "numa/topology.h"

namespace rankine {

struct PlacementPolicy {
  enum class Kind {
    // Neighbouring ranks on neighbouring cores: fills one L3, one node, one package, then the next.
    compact,
    // The next rank as far away as possible: packages, nodes, L3 groups in turn.
    scatter,
    // One rank on the first core of each node that has CPUs; more ranks than that is an error.
    one_per_node,
    // `cpus` in the order given.
    listed,
    // Nobody is pinned.
    none,
  };

  Kind kind = Kind::compact;
  std::vector<int> cpus;  // CPU numbers of the operating system; listed only

  bool operator==(const PlacementPolicy&) const = default;
};

struct PolicyResult {
  PlacementPolicy policy;
  std::string error;  // empty: policy is valid
  bool ok() const { return error.empty(); }
};

// "compact", "scatter", "one_per_node", "none", or a CPU list such as "0,2,4-7". "" is the default,
// compact.
PolicyResult parse_placement_policy(std::string_view text);

// The inverse of parse_placement_policy.
std::string to_string(const PlacementPolicy& policy);

constexpr int kNotPlaced = -1;

struct RankPlace {
  int cpu = kNotPlaced;      // CPU number of the operating system; kNotPlaced: not pinned
  int node = kNotPlaced;     // number of that CPU's memory node
  bool core_shared = false;  // another rank sits on the same core, on a sibling or on the same CPU

  bool operator==(const RankPlace&) const = default;
};

struct Placement {
  std::vector<RankPlace> ranks;  // one per rank, in rank order; empty on error
  bool oversubscribed = false;   // more ranks than CPUs to place them on: some CPU has two ranks
  std::string error;             // empty: valid
  bool ok() const { return error.empty(); }
};

// Pure: same input, same answer, no look at the running machine. `taken`: CPUs where others sit, on
// whose cores compact and scatter place ranks only when there are no others left.
// Ranks beyond the CPUs wrap round-robin (rank r sits where rank r - CPUs sits). compact and
// scatter give a core its second rank only after every core has one; on hybrid CPUs they take the
// faster cores of a node (compact) or cache (scatter) first. Errors name what was asked for
// and what is allowed: ranks < 1, an explicit CPU that is listed twice or is not in the topology,
// one_per_node with too many ranks.
Placement place_ranks(const Topology& topology, int ranks, const PlacementPolicy& policy = {},
                      const std::vector<int>& taken = {});

}  // namespace rankine
