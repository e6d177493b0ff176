// Recursive doubling along the lines of a torus: partners at distances 1, 2, 4 ...
// Rabenseifner, "Optimization of collective reduction operations", ICCS 2004; on tori Sack & Gropp,
// "Collective algorithms for multiported torus networks", ACM TOPC 1(2), 2015.
//   a ranks of a line, a power of two (others are folded)    k round of the reduce-scatter
#pragma once

#include "algorithms/exchange.h"

namespace rankine {

inline Rank doubling_partner(int, Rank r, int k) { return r ^ (1 << k); }

inline Schedule torus_doubling_all_gather(const std::vector<int>& dims) {
  return folded_torus_all_gather(dims, largest_power_of_two, halving_all_gather(doubling_partner));
}
inline Schedule torus_doubling_reduce_scatter(const std::vector<int>& dims) {
  return dual(torus_doubling_all_gather(dims));
}
inline Schedule torus_doubling_all_reduce(const std::vector<int>& dims) {
  return folded_torus_halving_all_reduce(dims, largest_power_of_two,
                                         halving_all_gather(doubling_partner));
}
inline Schedule torus_doubling_latency_all_reduce(const std::vector<int>& dims) {
  return exchange_all_reduce(dims, doubling_partner);
}

}  // namespace rankine
