// The dissemination barrier: in round k everyone tells the rank 2^k to the right; whoever has heard
// from that many rounds has heard, directly or not, from everyone. Any p.
// Hensgen, Finkel & Manber, "Two algorithms for barrier synchronization", IJPP 17(1), 1988.
//   p ranks    r rank    k round
#pragma once

#include "algorithms/schedule/combine.h"

namespace rankine {

inline Schedule dissemination_barrier(int p) {
  return {p, 1, ceil_log2(p), [p](int k, Send send) {
            for (Rank r : ranks(p)) send(r, r + (1 << k), block(0), reduce);
          }};
}

}  // namespace rankine
