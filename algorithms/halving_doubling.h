// Halving and doubling (Rabenseifner): an all-reduce of log2 q rounds that halve the vector between
// partners and add, and log2 q that double it again.
// Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005. Near first: the largest messages go to the
// nearest partners. Far first is recursive halving, then recursive doubling. With radix x groups of
// x share the vector in every round (MPICH 4, k-reduce-scatter-allgather; UCC, SRA knomial).
//   p ranks    x radix    q = x^l in the core and blocks (fold.h)    c core member    k round
#pragma once

#include "algorithms/recursive_doubling.h"

namespace rankine {

// The number whose l digits to base x are c's in reverse order.
constexpr int reversed_digits(int c, int l, int x) {
  int out = 0;
  for (; l > 0; --l, c /= x) out = out * x + c % x;
  return out;
}

// The all-gather half, farthest partners first: in round k member c has an interval of x^k blocks.
inline Schedule doubling_far_first(int q, int x = 2) {
  const int l = floor_log(x, q);
  return {q, q, l, [q, x, l](int k, Send send) {
            const int d = power_of(x, k);
            for_each_partner(q, x, l - 1 - k, [&](Rank c, Rank partner) {
              send(c, partner, blocks(reversed_digits(c, l, x) / d * d, d), copy);
            });
          }};
}

inline Schedule halving_doubling_all_reduce(int p, int x = 2) {
  return folded_all_reduce(p, reduce_scatter_then(doubling_far_first(core_size(p, x), x)));
}

inline Schedule halving_doubling_far_all_reduce(int p, int x = 2) {
  const int q = core_size(p, x);
  return folded_all_reduce(p, reduce_scatter_then(recursive_doubling_all_gather(q, x)));
}

inline Schedule halving_doubling_half_exchange_all_reduce(int p) {
  return half_exchange_all_reduce(p, reduce_scatter_then(doubling_far_first(core_size(p))));
}

}  // namespace rankine
