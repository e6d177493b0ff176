// The ring: everyone passes one block to the right-hand neighbour in every round.
// Patarasuk & Yuan, "Bandwidth optimal all-reduce algorithms", JPDC 69(2), 2009.
//   p ranks and blocks    r rank    k round
#pragma once

#include "algorithms/schedule/combine.h"

namespace rankine {

// Round k: rank r passes on the block that it received in round k - 1, its own one at first.
inline Schedule ring_all_gather(int p) {
  return {p, p, p - 1, [p](int k, Send send) {
            for (Rank r : ranks(p)) send(r, r + 1, block(r - k), copy);
          }};
}

// Reversed in time, the ring turns left, and rank r ends with block r, as the contract asks (the
// textbooks' version that turns right leaves it with block r + 1).
inline Schedule ring_reduce_scatter(int p) { return dual(ring_all_gather(p)); }

inline Schedule ring_all_reduce(int p) {
  return then(named("reduce-scatter", ring_reduce_scatter(p)),
              named("all-gather", ring_all_gather(p)));
}

}  // namespace rankine
