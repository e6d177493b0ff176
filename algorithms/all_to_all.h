// All-to-all: the block from s to d is number s * p + d, wherever it is.
// Pairwise exchange: Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005. The ring: Lu, "Collective
// Algorithms", 2026, 7.1.
// What is stated is rank 0's part (schedule/everyone.h).
//   p ranks    k round    w the way from a block's source to its destination, modulo p
#pragma once

#include "algorithms/schedule/combine.h"
#include "algorithms/schedule/everyone.h"

namespace rankine {

inline Block pair_of(int p, Rank source, Rank destination) {
  return wrapped(source, p) * p + wrapped(destination, p);
}

inline Schedule direct_all_to_all(int p) {
  return everyone({p, p * p, p > 1 ? 1 : 0,
                   [p](int, Send send) {
                     for (int w = 1; w < p; ++w) send(0, w, block(pair_of(p, 0, w)), copy);
                   }},
                  Moves::with_pair);
}

// Pairwise direct send with staggered partners: round k serves distance k + 1, so that everyone
// sends one message and receives one.
inline Schedule pairwise_all_to_all(int p) {
  return everyone({p, p * p, p - 1,
                   [p](int k, Send send) {
                     const int w = k + 1;
                     send(0, w, block(pair_of(p, 0, w)), copy);
                   }},
                  Moves::with_pair);
}

// The ring relay, every block the shorter way: round k passes on, in one message each way, whatever
// has farther to go than k. Blocks are split into halves at even p, for the destination straight
// across: either direction brings one half.
//   u parts of a block    h the farthest way of blocks that are not split
inline Schedule ring_all_to_all(int p) {
  const int u = p % 2 == 0 ? 2 : 1, h = (p - 1) / 2;
  return everyone({p, u * p * p, p / 2,
                   [p, u, h](int k, Send send) {
                     for (int side : {1, -1}) {
                       BlockSet moving;
                       for (int w = k + 1; w <= p / 2; ++w) {
                         const Block b = u * pair_of(p, -side * k, side * (w - k));
                         moving.list.append(w <= h ? Run{b, u, 1} : Run{b + (side < 0), 1, 1});
                       }
                       send(0, side, moving, copy);
                     }
                   }},
                  Moves::with_pair);
}

// The ring relay as textbooks trace it: one block at a time, first those with one hop to go, then
// those with two ...; the block to straight across goes to the right.
inline Schedule ring_relay_all_to_all(int p) {
  const int right = p / 2, left = (p - 1) / 2;  // the farthest that either direction goes
  return everyone({p, p * p, right * (right + 1) / 2,
                   [p, left](int k, Send send) {
                     int w = 1;  // round k is the hop number k of the blocks with w hops
                     for (; k >= w; ++w) k -= w;
                     send(0, 1, block(pair_of(p, -k, w - k)), copy);
                     if (w <= left) send(0, -1, block(pair_of(p, k, k - w)), copy);
                   }},
                  Moves::with_pair);
}

}  // namespace rankine
