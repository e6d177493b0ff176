// Rings on a torus. Bucket: ring reduce-scatter along one dimension after the other, on what is
// left of the vector, then ring all-gather back; 2D of them at once, each on its own links. And
// one ring through all ranks (a Hamiltonian cycle), turned both ways.
// Jain & Sabharwal, "Optimal bucket algorithms for large MPI collectives on torus interconnects",
// ICS 2010; Patarasuk & Yuan, JPDC 69(2), 2009, for the ring.
#pragma once

#include <utility>

#include "algorithms/hamiltonian_cycle.h"
#include "algorithms/ring.h"
#include "algorithms/torus_turns.h"

namespace rankine {

inline Schedule bucket_all_gather(const std::vector<int>& dims) {
  const auto other_way = [](int a) { return mirrored(ring_all_gather(a)); };
  return torus_all_gather(dims, {ring_all_gather, other_way}, Turns::whole);
}
inline Schedule bucket_reduce_scatter(const std::vector<int>& dims) {
  return dual(bucket_all_gather(dims));
}
inline Schedule bucket_all_reduce(const std::vector<int>& dims) {
  return reduce_scatter_then(bucket_all_gather(dims));
}

// ring_mirrored_all_gather() among the ranks in the order of the cycle, with two of the `parts` of
// every block, from `first` on; blocks go by the same name.
inline Schedule mirrored_ring_along(const std::vector<Rank>& cycle, int parts, int first) {
  Schedule ring = ring_mirrored_all_gather(static_cast<int>(cycle.size()));
  const int p = ring.ranks;
  const auto name = [cycle](Rank r) { return at(cycle, r); };
  return on(
      {p, p * parts, name,
       [name, parts, first](Block b) { return IndexList(parts * name(b / 2) + first + b % 2); }},
      std::move(ring));
}

inline Schedule hamiltonian_all_gather(const std::vector<int>& dims) {
  return mirrored_ring_along(hamiltonian_cycle(dims), 2, 0);
}
inline Schedule hamiltonian_reduce_scatter(const std::vector<int>& dims) {
  return dual(hamiltonian_all_gather(dims));
}
inline Schedule hamiltonian_all_reduce(const std::vector<int>& dims) {
  return reduce_scatter_then(hamiltonian_all_gather(dims));
}

}  // namespace rankine
