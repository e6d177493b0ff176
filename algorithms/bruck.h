// Bruck: ceil(log2 p) rounds for any p, with partners at distance 2^k modulo p.
// Bruck, Ho, Kipnis, Upfal & Weathersby, "Efficient algorithms for all-to-all communications in
// multiport message-passing systems", IEEE TPDS 8(11), 1997.
//   p ranks    r rank    k round    d = 2^k
#pragma once

#include <algorithm>

#include "algorithms/all_to_all.h"

namespace rankine {

// Round k: r has the blocks r ... r + d - 1, and sends them to the left; in the last round only as
// many as are missing there.
inline Schedule bruck_all_gather(int p) {
  return {p, p, ceil_log2(p), [p](int k, Send send) {
            const int d = 1 << k;
            for (Rank r : ranks(p)) send(r, r - d, blocks(r, std::min(d, p - d)), copy);
          }};
}

inline Schedule bruck_reduce_scatter(int p) { return dual(bruck_all_gather(p)); }

// A block with way w to go (from its source to its destination, modulo p) moves in the rounds that
// are bits of w. Before round k it has gone w mod d: the rotations of the paper, before and after,
// are where it lies in memory, and no business of a schedule.
inline Schedule bruck_all_to_all(int p) {
  return {p, p * p, ceil_log2(p), [p](int k, Send send) {
            const int d = 1 << k;
            for (Rank r : ranks(p)) {
              BlockSet moving;
              for (int w = d; w < p; w = (w + 1) | d) {
                moving.list.append(pair_of(p, r - w % d, r - w % d + w));
              }
              send(r, r + d, moving, copy);
            }
          }};
}

}  // namespace rankine
