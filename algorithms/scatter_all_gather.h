// Broadcast of long vectors: scatter by a binomial tree, then all-gather round the ring.
// van de Geijn; Barnett, Shuler, Gupta, Payne, van de Geijn & Watts, "Building a high-performance
// collective communication library", Supercomputing 1994.
//   p ranks and blocks    r rank, the root is 0    k round
#pragma once

#include "algorithms/tree.h"

namespace rankine {

// After the scatter r has the blocks r ... r + 2^i - 1, where 2^i is r's lowest bit: it keeps them
// all, so the ring need not bring them again.
inline Schedule ring_of_missing_blocks(int p) {
  return {p, p, p - 1, [p](int k, Send send) {
            for (Rank r = 0; r < p - 1; ++r) {
              const Block b = (r - k + p) % p;
              const int has = (r + 1) & -(r + 1);
              if (b < r + 1 || b >= r + 1 + has) send(r, r + 1, block(b), copy);
            }
          }};
}

inline Schedule scatter_all_gather_broadcast(int p, Rank root) {
  return turned(root, then(named("scatter", tree_scatter(binomial_far(p), 0)),
                           named("all-gather", ring_of_missing_blocks(p))));
}

inline Schedule reduce_scatter_gather_reduce(int p, Rank root) {
  return dual(scatter_all_gather_broadcast(p, root));
}

}  // namespace rankine
