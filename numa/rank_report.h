// Where a rank ended up and what the machine refused it: data for reports and drawings.
#pragma once

#include <string>
#include <vector>

#include "numa/arena.h"
#include "numa/enforcement.h"
#include "numa/placement.h"
#include "numa/topology.h"

namespace rankine {

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
