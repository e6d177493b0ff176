// Swing: partners at distances 1, -1, 3, -5, 11 ... of the rank, which halves the way that data go
// round a ring.
// De Sensi, Bonato, Saam & Hoefler, "Swing: Short-cutting rings for higher bandwidth allreduce",
// NSDI 2024.
//   a ranks of a line, an even number (one more is folded)    k round of the reduce-scatter
#pragma once

#include "algorithms/exchange.h"

namespace rankine {

// rho = 1 - 2 + 4 ... +- 2^k to the right of even ranks and to the left of odd ones.
inline Rank swing_partner(int a, Rank r, int k) {
  int rho = 0;
  for (int i = 0, term = 1; i <= k; ++i, term *= -2) rho += term;
  return wrapped(r % 2 == 0 ? r + rho : r - rho, a);
}

inline Schedule swing_all_gather(const std::vector<int>& dims) {
  return folded_torus_all_gather(dims, largest_even, halving_all_gather(swing_partner));
}
inline Schedule swing_reduce_scatter(const std::vector<int>& dims) {
  return dual(swing_all_gather(dims));
}
inline Schedule swing_all_reduce(const std::vector<int>& dims) {
  return folded_torus_halving_all_reduce(dims, largest_even, halving_all_gather(swing_partner));
}
inline Schedule swing_latency_all_reduce(const std::vector<int>& dims) {
  return exchange_all_reduce(dims, swing_partner);
}

}  // namespace rankine
