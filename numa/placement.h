// Which rank runs on which CPU.
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

// The machine's levels as neighbouring ranks see them.

// How many neighbouring ranks share an L3, a memory node, a package: sizes of groups, rising, each
// a multiple of the one before. A level counts where ranks 0 ... g - 1 are one group, the next g
// another, and so on (the last may have fewer), as compact placement makes them; one that is not
// like this, that has one group only, or one rank in each, is left out. Empty where somebody is not
// placed. Pure.
std::vector<int> level_groups(const Topology& topology, const Placement& placement);
// The same of any levels, innermost first: of each, the group that every rank is in.
std::vector<int> level_groups(std::span<const std::vector<int>> groups_of_ranks);

// Pinning the calling thread, with a way out where the machine refuses.

// Restricts the calling thread to CPU `cpu`; cpu < 0 means "do not pin" and leaves the mask alone.
// Where the kernel does not tell the mask (sched_getaffinity refused), nothing is pinned: that is a
// refusal. Refused (forbidden, absent, no permission): the thread is spread over `fallback`
// instead, or keeps the mask it has where that is empty or refused too; the result says why, and
// the first refusal of a process warns. Undone only by another call: the mask outlives the caller's
// interest and is inherited by new threads.
Enforcement pin_calling_thread(int cpu, const std::vector<int>& fallback = {}) noexcept;

// The same for a placed rank, with all the topology's CPUs as fallback. Where the topology does not
// describe this machine nothing is pinned, and that is reported as refused.
Enforcement pin_calling_thread(const Topology& topology, const RankPlace& place) noexcept;

// Moves the calling thread to that CPU, and leaves it free to run on all CPUs that it had: for
// threads that are not pinned, and should not begin on one CPU together. What the kernel refuses
// leaves the thread where it is.
void move_calling_thread(int cpu) noexcept;

// Where a rank ended up and what the machine refused it: data for reports and drawings.

// Plain data. The numbers are the operating system's; kNotPlaced where the rank is not pinned.
struct RankReport {
  int rank = 0;
  RankPlace place;         // what was intended
  Enforcement pin;         // did the thread get there
  Enforcement binding;     // is its memory tied to place.node
  Enforcement huge_pages;  // are its large chunks in huge pages
  Enforcement locking;     // is its memory kept from being swapped out

  bool all_enforced() const {
    return !pin.refused() && !binding.refused() && !huge_pages.refused() && !locking.refused();
  }
};

// Options of the arena that belongs to a placed rank: on its node, or first touch where the rank is
// not placed or the topology does not describe this machine or does not know its nodes.
ArenaOptions arena_options(const Topology& topology, const RankPlace& place);

// For memory that all ranks read: page by page over the nodes of the placed ranks in turn, in small
// pages, since a huge one lies on one node whole. First touch where arena_options() has it.
ArenaOptions interleaved_options(const Topology& topology, const std::vector<RankPlace>& places);

// The report of a rank without memory; what became of its memory is added by whoever has it
// (Enforcement::add). Where arena_options() gives up the node of a placed rank, binding is refused
// from the start.
RankReport make_rank_report(int rank, const Topology& topology, const RankPlace& place,
                            const Enforcement& pin);

// One line: "rank 3: cpu 3, node 0; memory not bound: mbind: Operation not permitted".
std::string to_string(const RankReport& report);

}  // namespace rankine
