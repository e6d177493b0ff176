// The ring: everyone passes one block to the right-hand neighbour in every round.
// Patarasuk & Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC
// 69(2), 2009.
//   p ranks and blocks    k round    What is stated is rank 0's part (schedule/everyone.h).
#pragma once

#include "algorithms/schedule/combine.h"
#include "algorithms/schedule/everyone.h"

namespace rankine {

// Round k: a rank passes on the block that it received in round k - 1, its own one at first.
inline Schedule ring_all_gather(int p) {
  return everyone({p, p, p - 1, [](int k, Send send) { send(0, 1, block(-k), copy); }},
                  Moves::with_rank);
}

// Both directions, each with one half of every block: as many rounds of half the size.
inline Schedule ring_mirrored_all_gather(int p) {
  return halves(ring_all_gather(p), mirrored(ring_all_gather(p)));
}

// Both directions, every block the shorter way: half of the rounds. Of the block from straight
// across (even p), either direction brings one half. All to the right, then all to the left, so
// that ports do not wait for one another where there is one only.
//   s parts of a block    h rounds in which whole blocks arrive from both sides
inline Schedule ring_shortest_all_gather(int p) {
  const int s = p % 2 == 0 ? 2 : 1, h = (p - 1) / 2;
  return everyone({p, s * p, p / 2,
                   [s, h](int k, Send send) {
                     send(0, 1, k < h ? blocks(-s * k, s) : block(-s * k), copy);
                     send(0, -1, k < h ? blocks(s * k, s) : block(s * k + 1), copy);
                   }},
                  Moves::with_rank);
}

// Reversed in time, the ring turns left, and rank r ends with block r, as the contract asks (the
// textbooks' version that turns right leaves it with block r + 1).
inline Schedule ring_reduce_scatter(int p) { return dual(ring_all_gather(p)); }
inline Schedule ring_mirrored_reduce_scatter(int p) { return dual(ring_mirrored_all_gather(p)); }
inline Schedule ring_shortest_reduce_scatter(int p) { return dual(ring_shortest_all_gather(p)); }

inline Schedule ring_all_reduce(int p) { return reduce_scatter_then(ring_all_gather(p)); }
inline Schedule ring_mirrored_all_reduce(int p) {
  return reduce_scatter_then(ring_mirrored_all_gather(p));
}
inline Schedule ring_shortest_all_reduce(int p) {
  return reduce_scatter_then(ring_shortest_all_gather(p));
}

}  // namespace rankine
