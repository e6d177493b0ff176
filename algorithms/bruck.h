// Bruck: ceil(log_x p) rounds for any p, with partners at distances d, 2d ... (x - 1) d modulo p,
// d = x^k. With radix x = 2 one message per round; with more, one for every port.
// Bruck, Ho, Kipnis, Upfal & Weathersby, "Efficient algorithms for all-to-all communications in
// multiport message-passing systems", IEEE TPDS 8(11), 1997. MPICH 4 calls it k-Bruck.
//   p ranks    x radix    k round    d distance    j messages of a round
// What is stated is rank 0's part (schedule/everyone.h).
#pragma once

#include <algorithm>

#include "algorithms/all_to_all.h"
#include "algorithms/schedule/everyone.h"

namespace rankine {

// Round k: rank 0 has the blocks 0 ... d - 1, and sends them to the left; in the last round only as
// many as are missing there.
inline Schedule bruck_all_gather(int p, int x = 2) {
  return everyone({p, p, ceil_log(x, p),
                   [p, x](int k, Send send) {
                     const int d = power_of(x, k);
                     for (int j = 1; j < x && j * d < p; ++j) {
                       send(0, -j * d, blocks(0, std::min(d, p - j * d)), copy);
                     }
                   }},
                  Moves::with_rank);
}

inline Schedule bruck_reduce_scatter(int p, int x = 2) { return dual(bruck_all_gather(p, x)); }

// A block with way w to go (from its source to its destination, modulo p) moves in the rounds in
// which w has a digit j that is not 0, by j d. Before round k it has gone w mod d: the rotations of
// the paper, before and after, are where it lies in memory, and no business of a schedule.
inline Schedule bruck_all_to_all(int p, int x = 2) {
  return everyone({p, p * p, ceil_log(x, p),
                   [p, x](int k, Send send) {
                     const int d = power_of(x, k);
                     for (int j = 1; j < x && j * d < p; ++j) {
                       BlockSet moving;
                       for (int w = j * d; w < p; ++w) {
                         if (w / d % x == j) moving.list.append(pair_of(p, -(w % d), w - w % d));
                       }
                       send(0, j * d, moving, copy);
                     }
                   }},
                  Moves::with_pair);
}

}  // namespace rankine
