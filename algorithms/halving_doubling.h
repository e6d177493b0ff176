// Halving and doubling (Rabenseifner): an all-reduce of log2 q rounds that halve the vector between
// partners and add, and log2 q that double it again.
// Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005. Near first: the largest messages go to the
// nearest partners. Far first is recursive halving, then recursive doubling.
//   p ranks    q = 2^floor(log2 p) in the core and blocks (fold.h)    c core member    k round
#pragma once

#include "algorithms/recursive_doubling.h"

namespace rankine {

// The number whose `bits` bits are c's in reverse order.
constexpr int reversed_bits(int c, int bits) {
  int out = 0;
  for (int i = 0; i < bits; ++i) out |= ((c >> i) & 1) << (bits - 1 - i);
  return out;
}

// The all-gather half, farthest partners first: in round k member c has an interval of 2^k blocks.
inline Schedule doubling_far_first(int q) {
  const int l = floor_log2(q);
  return {q, q, l, [q, l](int k, Send send) {
            for (Rank c : ranks(q)) {
              const Block first = reversed_bits(c, l) & -(1 << k);
              send(c, c ^ (1 << (l - 1 - k)), blocks(first, 1 << k), copy);
            }
          }};
}

inline Schedule halving_doubling_all_reduce(int p) {
  return folded_all_reduce(p, reduce_scatter_then(doubling_far_first(core_size(p))));
}

inline Schedule halving_doubling_far_all_reduce(int p) {
  const int q = core_size(p);
  return folded_all_reduce(p, reduce_scatter_then(recursive_doubling_all_gather(q)));
}

}  // namespace rankine
