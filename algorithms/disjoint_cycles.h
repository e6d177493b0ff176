// Hamiltonian cycles of a torus that share no edge: rings both ways along all of them use every
// port of every rank, each message on a link of its own. Of one dimension there is one, of two
// there are two: Kotzig, "Every Cartesian product of two circuits is decomposable into two
// Hamiltonian circuits", 1973; as rows and diagonals Bae & Bose, "Edge disjoint Hamiltonian cycles
// in k-ary n-cubes and hypercubes", IEEE Trans. Computers 52(10), 2003. Here two sizes must both be
// even or both be odd: what is left of the first cycle is a cycle then.
#pragma once

#include <vector>

#include "algorithms/bucket.h"

namespace rankine {

// `dims`: one size, or two of 3 and more, both even or both odd.
std::vector<std::vector<Rank>> disjoint_cycles(const std::vector<int>& dims);

// Every cycle carries its part of every block, one half of it either way round.
inline Schedule hamiltonian_disjoint_all_gather(const std::vector<int>& dims) {
  const auto cycles = disjoint_cycles(dims);
  std::vector<Schedule> rings;
  const int parts = 2 * static_cast<int>(cycles.size());
  for (int first = 0; first < parts; first += 2) {
    rings.push_back(mirrored_ring_along(cycles[static_cast<std::size_t>(first / 2)], parts, first));
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
