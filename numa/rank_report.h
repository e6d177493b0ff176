// Where a rank ended up and what the machine refused it: data for reports and drawings.
#ifndef RANKINE_NUMA_RANK_REPORT_H_
#define RANKINE_NUMA_RANK_REPORT_H_

#include <cstddef>
#include <string>

#include "numa/arena.h"
#include "numa/enforcement.h"
#include "numa/placement.h"
#include "numa/topology.h"

namespace rankine {

// Plain data. The numbers are the operating system's; kNotPlaced where the rank is not pinned.
struct RankReport {
  int rank = 0;
  RankPlace place;                 // what was intended
  Enforcement pin;                 // did the thread get there
  Enforcement binding;             // is its memory tied to place.node
  Enforcement huge_pages;          // are its large chunks in huge pages
  std::size_t bytes_reserved = 0;  // address space of its arena

  bool all_enforced() const {
    return !pin.refused() && !binding.refused() && !huge_pages.refused();
  }
};

// Options of the arena that belongs to a placed rank: on its node, or first touch where the rank is
// not placed or the topology does not describe this machine or does not know its nodes.
ArenaOptions arena_options(const Topology& topology, const RankPlace& place);

// Gathers the report. `arena` was made with arena_options(topology, place); where those gave up the
// node of a placed rank, binding is reported as refused.
RankReport make_rank_report(int rank, const Topology& topology, const RankPlace& place,
                            const Enforcement& pin, const Arena& arena);

// One line: "rank 3: cpu 3, node 0; memory not bound: mbind: Operation not permitted".
std::string to_string(const RankReport& report);

}  // namespace rankine

#endif  // RANKINE_NUMA_RANK_REPORT_H_
