// All-to-all: the block from s to d is number s * p + d, wherever it is.
// Pairwise exchange: Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005. The ring: Lu, "Collective
// Algorithms", 2026, 7.1.
//   p ranks    r rank    k round    w the way from a block's source to its destination, modulo p
#pragma once

#include "algorithms/schedule/combine.h"

namespace rankine {

inline Block pair_of(int p, Rank source, Rank destination) {
  const auto wrap = [p](int r) { return ((r % p) + p) % p; };
  return wrap(source) * p + wrap(destination);
}

inline Schedule direct_all_to_all(int p) {
  return {p, p * p, p > 1 ? 1 : 0, [p](int, Send send) {
            for (int w = 1; w < p; ++w) {
              for (Rank r : ranks(p)) send(r, r + w, block(pair_of(p, r, r + w)), copy);
            }
          }};
}

// Pairwise direct send with staggered partners: round k serves distance k + 1, so that everyone
// sends one message and receives one.
inline Schedule pairwise_all_to_all(int p) {
  return {p, p * p, p - 1, [p](int k, Send send) {
            const int w = k + 1;
            for (Rank r : ranks(p)) send(r, r + w, block(pair_of(p, r, r + w)), copy);
          }};
}

// The ring relay, every block the shorter way: round k passes on, in one message each way, whatever
// has farther to go than k. Blocks are split into halves at even p, for the destination straight
// across: either direction brings one half.
//   u parts of a block    h the farthest way of blocks that are not split
inline Schedule ring_all_to_all(int p) {
  const int u = p % 2 == 0 ? 2 : 1, h = (p - 1) / 2;
  return {p, u * p * p, p / 2, [p, u, h](int k, Send send) {
            for (int side : {1, -1}) {
              for (Rank r : ranks(p)) {
                BlockSet moving;
                for (int w = k + 1; w <= p / 2; ++w) {
                  const Block b = u * pair_of(p, r - side * k, r - side * k + side * w);
                  moving.list.append(w <= h ? Run{b, u, 1} : Run{b + (side < 0), 1, 1});
                }
                send(r, r + side, moving, copy);
              }
            }
          }};
}

// The ring relay as textbooks trace it: one block at a time, first those with one hop to go, then
// those with two ...; the block to straight across goes to the right.
inline Schedule ring_relay_all_to_all(int p) {
  const int right = p / 2, left = (p - 1) / 2;  // the farthest that either direction goes
  return {p, p * p, right * (right + 1) / 2, [p, left](int k, Send send) {
            int w = 1;  // round k is the hop number k of the blocks with w hops
            for (; k >= w; ++w) k -= w;
            for (Rank r : ranks(p)) send(r, r + 1, block(pair_of(p, r - k, r - k + w)), copy);
            if (w > left) return;
            for (Rank r : ranks(p)) send(r, r - 1, block(pair_of(p, r + k, r + k - w)), copy);
          }};
}

}  // namespace rankine
