// Recursive doubling: in round k partners at distance 2^k exchange everything that they have.
// Thakur, Rabenseifner & Gropp, "Optimization of collective communication operations in MPICH",
// IJHPCA 19(1), 2005.
//   p ranks (a power of two)    r rank    k round
#pragma once

#include "algorithms/schedule/combine.h"

namespace rankine {

inline Schedule recursive_doubling_all_reduce(int p) {
  return {p, 1, floor_log2(p), [p](int k, Send send) {
            for (Rank r : ranks(p)) send(r, r ^ (1 << k), block(0), reduce);
          }};
}

}  // namespace rankine
