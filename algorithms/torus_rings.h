// hamiltonian_cycle() is one ring through all ranks of a torus, for any sizes, and
// disjoint_cycles() are several rings that share no edge. This header makes the schedules of these
// rings, and of bucket.
#pragma once

#include <utility>
#include <vector>

#include "algorithms/ring.h"
#include "algorithms/schedule/blocks.h"
#include "algorithms/torus.h"

namespace rankine {

// The ranks of a torus in an order in which neighbours follow each other, the first one after the
// last one. Rank 0 comes first.
std::vector<Rank> hamiltonian_cycle(const std::vector<int>& dims);

// Rings on a torus. Bucket: ring reduce-scatter along one dimension after the other, on the
// remaining part of the vector, then ring all-gather back; 2D of them at once, each on separate
// links. The short form needs fewer rounds if sizes differ, but its collectives meet in the largest
// dimension. And one ring through all ranks (a Hamiltonian cycle), in both directions. Jain &
// Sabharwal, "Optimal bucket algorithms for large MPI collectives on torus interconnects", ICS
// 2010; Patarasuk & Yuan, JPDC 69(2), 2009, for the ring.

inline Schedule bucket_all_gather(const std::vector<int>& dims, Turns turns = Turns::apart) {
  const auto other_way = [](int a) { return mirrored(ring_all_gather(a)); };
  return torus_all_gather(dims, {ring_all_gather, other_way}, turns);
}
inline Schedule bucket_reduce_scatter(const std::vector<int>& dims, Turns turns = Turns::apart) {
  return dual(bucket_all_gather(dims, turns));
}
inline Schedule bucket_all_reduce(const std::vector<int>& dims, Turns turns = Turns::apart) {
  return reduce_scatter_then(bucket_all_gather(dims, turns));
}

// ring_mirrored_all_gather() among the ranks in the order of the cycle, with two of the `parts` of
// every block, from `first` on; blocks are named as their ranks.
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

// Hamiltonian cycles of a torus that share no edge, one for every dimension: rings both ways along
// all of them use every port of every rank, each message on a separate link. They exist if every
// size is 3 or more. For two dimensions: Kotzig, "Every Cartesian product of two circuits is
// decomposable into two Hamiltonian circuits", 1973; for three: Foregger, "Hamiltonian
// decompositions of products of cycles", Discrete Math. 24(3), 1978; for a cycle and any graph of
// two: Aubert & Schneider, Discrete Math. 38(1), 1982, which together with products gives all. For
// k-ary n-cubes as codes: Bae & Bose, "Edge disjoint Hamiltonian cycles in k-ary n-cubes and
// hypercubes", IEEE Trans. Computers 52(10), 2003. The papers prove existence; the construction is
// ours: squares that exchange opposite edges (Layers in torus_rings.cc).

// As many as `dims` has sizes, each the ranks in its order. `dims`: one size, or several of 3 and
// more. Takes time linear in the ranks, times the dimensions.
std::vector<std::vector<Rank>> disjoint_cycles(const std::vector<int>& dims);

// Every cycle carries one part of every block, one half of it each way round.
inline Schedule hamiltonian_disjoint_all_gather(const std::vector<int>& dims) {
  const auto cycles = disjoint_cycles(dims);
  std::vector<Schedule> rings;
  const int parts = 2 * static_cast<int>(cycles.size());
  for (int first = 0; first < parts; first += 2) {
    rings.push_back(mirrored_ring_along(at(cycles, first / 2), parts, first));
  }
  return together(std::move(rings));
}
inline Schedule hamiltonian_disjoint_reduce_scatter(const std::vector<int>& dims) {
  return dual(hamiltonian_disjoint_all_gather(dims));
}
inline Schedule hamiltonian_disjoint_all_reduce(const std::vector<int>& dims) {
  return reduce_scatter_then(hamiltonian_disjoint_all_gather(dims));
}

}  // namespace rankine
