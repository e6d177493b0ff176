// The dissemination barrier: in round k everyone tells the ranks d, 2d ... (x - 1) d to the right,
// d = x^k; whoever has heard from that many rounds has heard, directly or not, from everyone. Any
// p. Hensgen, Finkel & Manber, "Two algorithms for barrier synchronization", IJPP 17(1), 1988, for
// radix x = 2; MPICH 4 has any.
//   p ranks    x radix    r rank    k round    d distance
#pragma once

#include "algorithms/schedule/combine.h"

namespace rankine {

inline Schedule dissemination_barrier(int p, int x = 2) {
  return {p, 1, ceil_log(x, p), [p, x](int k, Send send) {
            const int d = power_of(x, k);
            for (int j = 1; j < x && j * d < p; ++j) {
              for (Rank r : ranks(p)) send(r, r + j * d, block(0), reduce);
            }
          }};
}

}  // namespace rankine
