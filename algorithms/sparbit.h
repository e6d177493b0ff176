// Sparbit: every block spreads through a binomial tree of its own, the farthest distance first, in
// a message of its own: nothing is packed, and the largest exchanges stay near. Loch & Koslovski,
// "Sparbit: a new logarithmic-cost and data locality-aware MPI Allgather algorithm",
// arXiv:2109.08751, 2021; Open MPI (coll/base). Its blocks go the way of PAT's (pat.h) with the
// largest aggregation, which sends those of a round in one message.
//   p ranks    l = ceil(log2 p)    k round    d distance    i way that a block has gone
// What is stated is rank 0's part (schedule/everyone.h).
#pragma once

#include "algorithms/schedule/combine.h"
#include "algorithms/schedule/everyone.h"

namespace rankine {

inline Schedule sparbit_all_gather(int p) {
  return everyone({p, p, ceil_log2(p),
                   [p, l = ceil_log2(p)](int k, Send send) {
                     const int d = 1 << (l - 1 - k);
                     for (int i = 0; i + d < p; i += 2 * d) send(0, d, block(-i), copy);
                   }},
                  Moves::with_rank);
}

}  // namespace rankine
