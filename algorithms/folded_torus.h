// On a torus that is folded (torus_fold.h) what is for powers of two, or for even sizes, serves any
// sizes. The price: two more rounds for every dimension that is folded, and in each of them once
// more the vector to and from each rank that has a surplus one.
#pragma once

#include <functional>
#include <vector>

#include "algorithms/torus_fold.h"

namespace rankine {

inline int largest_power_of_two(int a) { return core_size(a); }
inline int largest_even(int a) { return a == 1 ? 1 : a - a % 2; }

// core(sizes): the all-reduce on a torus of sizes that stay as they are.
using OnTorus = std::function<Schedule(const std::vector<int>& dims)>;
Schedule folded_torus_all_reduce(const std::vector<int>& dims, CoreSize size, const OnTorus& core);

// core(sizes): the all-gather on such a torus, of as many blocks of every rank as it likes. A core
// member's are its own and those of the ranks that are folded into it.
Schedule folded_torus_all_gather(const std::vector<int>& dims, CoreSize size, const OnTorus& core);

// The all-reduce whose halves are that all-gather and its dual: not among all ranks, who would send
// what is folded block by block, but in the core.
inline Schedule folded_torus_halving_all_reduce(const std::vector<int>& dims, CoreSize size,
                                                const OnTorus& core) {
  return folded_torus_all_reduce(
      dims, size, [&core](const auto& sizes) { return reduce_scatter_then(core(sizes)); });
}

}  // namespace rankine
