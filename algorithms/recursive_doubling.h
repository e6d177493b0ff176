// Recursive doubling: in round k partners at distance 2^k exchange everything that they have.
// Thakur, Rabenseifner & Gropp, "Optimization of collective communication operations in MPICH",
// IJHPCA 19(1), 2005.
//   p ranks    q = 2^floor(log2 p) of them in the core (fold.h)    c core member    k round
#pragma once

#include "algorithms/fold.h"

namespace rankine {

inline Schedule recursive_doubling_all_reduce(int p) {
  const Schedule core{core_size(p), 1, floor_log2(p), [q = core_size(p)](int k, Send send) {
                        for (Rank c : ranks(q)) send(c, c ^ (1 << k), block(0), reduce);
                      }};
  return folded_all_reduce(p, core);
}

// The 2^k members of c's aligned group have the blocks of all of them, and those of the ranks
// folded into them: one interval.
inline Schedule recursive_doubling_all_gather(int p) {
  const Fold fold(p);
  const Schedule core{fold.core, p, floor_log2(p), [fold](int k, Send send) {
                        for (Rank c : ranks(fold.core)) {
                          const int first = c & -(1 << k), end = first + (1 << k);
                          send(c, c ^ (1 << k),
                               blocks(fold.rank(first), fold.rank(end) - fold.rank(first)), copy);
                        }
                      }};
  return folded_all_gather(p, core);
}

// Recursive halving: the same, reversed in time.
inline Schedule recursive_halving_reduce_scatter(int p) {
  return dual(recursive_doubling_all_gather(p));
}

}  // namespace rankine
