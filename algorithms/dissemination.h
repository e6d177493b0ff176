// The dissemination barrier: in round k everyone tells the ranks d, 2d ... (x - 1) d to the right,
// d = x^k; whoever has heard from that many rounds has heard, directly or not, from everyone. Any
// p. Hensgen, Finkel & Manber, "Two algorithms for barrier synchronization", IJPP 17(1), 1988, for
// radix x = 2; MPICH 4 has any.
//   p ranks    x radix    k round    d distance    Stated is rank 0's part (schedule/everyone.h).
#pragma once

#include "algorithms/schedule/combine.h"
#include "algorithms/schedule/everyone.h"

namespace rankine {

inline Schedule dissemination_barrier(int p, int x = 2) {
  return everyone({p, 1, ceil_log(x, p),
                   [p, x](int k, Send send) {
                     const int d = power_of(x, k);
                     for (int j = 1; j < x && j * d < p; ++j) send(0, j * d, block(0), reduce);
                   }},
                  Moves::nothing);
}

}  // namespace rankine
