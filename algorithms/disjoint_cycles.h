// Hamiltonian cycles of a torus that share no edge, one for every dimension: rings both ways along
// all of them use every port of every rank, each message on a link of its own. There are such
// cycles wherever every size is 3 or more. Of two dimensions: Kotzig, "Every Cartesian product of
// two circuits is decomposable into two Hamiltonian circuits", 1973; of three: Foregger,
// "Hamiltonian decompositions of products of cycles", Discrete Math. 24(3), 1978; of a cycle and
// any graph of two: Aubert & Schneider, Discrete Math. 38(1), 1982, with which products give all.
// For k-ary n-cubes as codes: Bae & Bose, "Edge disjoint Hamiltonian cycles in k-ary n-cubes and
// hypercubes", IEEE Trans. Computers 52(10), 2003. That they exist is theirs; how they are made is
// ours: squares whose opposite edges change hands (layers.h).
#pragma once

#include <vector>

#include "algorithms/bucket.h"

namespace rankine {

// As many as `dims` has sizes, each the ranks in its order. `dims`: one size, or several of 3 and
// more. Takes time linear in the ranks, times the dimensions.
std::vector<std::vector<Rank>> disjoint_cycles(const std::vector<int>& dims);

// Every cycle carries its part of every block, one half of it either way round.
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
