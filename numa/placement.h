// Placement chooses a CPU for each rank, pins threads to CPUs, and reports the pin and the memory
// of each rank.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numa/memory.h"
#include "numa/refusals.h"
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
    // no rank is pinned
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
  int cpu = kNotPlaced;   // CPU number of the operating system; kNotPlaced: not pinned
  int node = kNotPlaced;  // number of that CPU's memory node
  // another rank is on the same core, on a sibling thread or on the same CPU
  bool core_shared = false;

  bool operator==(const RankPlace&) const = default;
};

struct Placement {
  std::vector<RankPlace> ranks;  // one per rank, in rank order; empty on error
  bool oversubscribed = false;   // more ranks than usable CPUs: some CPU has two ranks
  std::string error;             // empty: valid
  bool ok() const { return error.empty(); }
};

// Pure: equal input gives an equal answer, without a look at the running machine. `taken`: CPUs of
// other programs; compact and scatter use their cores only when no others are left. Ranks beyond
// the number of CPUs wrap round-robin (rank r sits where rank r - CPUs sits). compact and scatter
// give a core its second rank only after every core has one; on hybrid CPUs they take the faster
// cores of a node (compact) or cache (scatter) first. Errors name the value and the allowed values:
// ranks < 1, an explicit CPU that is listed twice or is not in the topology, one_per_node with too
// many ranks.
Placement place_ranks(const Topology& topology, int ranks, const PlacementPolicy& policy = {},
                      const std::vector<int>& taken = {});

// The machine's levels, as neighbouring ranks see them.

// The number of neighbouring ranks that share an L3, a memory node, a package: sizes of groups,
// rising, each a multiple of the one before. A level counts if ranks 0 ... g - 1 are one group, the
// next g another, and so on (the last may have fewer), as compact placement makes them. Other
// levels, and levels with one group or with one rank per group, are left out. Empty if a rank is
// not placed. Pure.
std::vector<int> level_groups(const Topology& topology, const Placement& placement);
// level_groups() for any levels, innermost first; each level lists the group of every rank.
std::vector<int> level_groups(std::span<const std::vector<int>> groups_of_ranks);

// Pinning the calling thread. If the machine refuses, the thread still runs, and the result says
// so.

// Restricts the calling thread to CPU `cpu`; cpu < 0 means "do not pin" and leaves the mask alone.
// If the kernel does not report the mask (sched_getaffinity refused), nothing is pinned: that is a
// refusal. If the pin is refused (forbidden, absent, no permission), the thread is spread over
// `fallback`, or keeps its mask if `fallback` is empty or refused too; the result gives the reason,
// and the first refusal of a process warns. Only another call undoes the pin: the mask stays, and
// new threads inherit it.
Enforcement pin_calling_thread(int cpu, const std::vector<int>& fallback = {}) noexcept;

// Pins a placed rank, with all the topology's CPUs as fallback. If the topology does not describe
// this machine, nothing is pinned, and the result is a refusal.
Enforcement pin_calling_thread(const Topology& topology, const RankPlace& place) noexcept;

// Moves the calling thread to that CPU and leaves it free to run on all its CPUs: for unpinned
// threads that should not all begin on one CPU. If the kernel refuses, the thread stays.
void move_calling_thread(int cpu) noexcept;

// RankReport tells where a rank runs and which wishes the machine refused: data for reports and
// drawings.

// Plain data. Numbers are the operating system's; kNotPlaced if the rank is not pinned.
struct RankReport {
  int rank = 0;
  RankPlace place;         // the intended place
  Enforcement pin;         // is the thread there
  Enforcement binding;     // is its memory tied to place.node
  Enforcement huge_pages;  // are its large chunks in huge pages
  Enforcement locking;     // is its memory kept from being swapped out

  bool all_enforced() const {
    return !pin.refused() && !binding.refused() && !huge_pages.refused() && !locking.refused();
  }
};

// Options for the arena of a placed rank: on its node. First touch if the rank is not placed, or
// the topology does not describe this machine or does not know its nodes.
ArenaOptions arena_options(const Topology& topology, const RankPlace& place);

// Options for memory that all ranks read: interleaved page by page over the nodes of the placed
// ranks, in small pages, since a huge page lies on one node. First touch under the conditions of
// arena_options().
ArenaOptions interleaved_options(const Topology& topology, const std::vector<RankPlace>& places);

// The report of a rank without memory; the owner of its memory adds that result (Enforcement::add).
// If arena_options() gives up the node of a placed rank, binding is refused from the start.
RankReport make_rank_report(int rank, const Topology& topology, const RankPlace& place,
                            const Enforcement& pin);

// One line: "rank 3: cpu 3, node 0; memory not bound: mbind: Operation not permitted".
std::string to_string(const RankReport& report);

}  // namespace rankine
