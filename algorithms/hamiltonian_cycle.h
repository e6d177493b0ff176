// A ring through all ranks of a torus. hamiltonian_cycle() is for any sizes; disjoint_cycles.h has
// several that share no edge.
#pragma once

#include <vector>

#include "algorithms/schedule/blocks.h"

namespace rankine {

// The ranks of a torus in an order in which neighbours follow each other, the first one after the
// last one. Rank 0 comes first.
std::vector<Rank> hamiltonian_cycle(const std::vector<int>& dims);

}  // namespace rankine
