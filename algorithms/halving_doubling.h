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

// Padded to the next power of two with ghosts that contribute nothing (the chapter's exercise 5,
// option 1). Ghost c is played by its first partner, rank c - q / 2, with which it then has nothing
// to exchange: no more rounds than the fold, and no vector more, but such a rank sends two messages
// in every other round, unless its partner plays a ghost, too. This is the all-gather half.
//   q the power of two    c rank or ghost
inline Schedule ghosts_all_gather(int p) {
  const int q = power_of(2, ceil_log2(p)), half = q / 2;
  return {p, q, ceil_log2(p), [p, half](int k, Send send) {
            const int d = power_of(2, k);
            const auto plays_two = [p, half](Rank r) { return r < half && r + half >= p; };
            const auto of = [d](int c) { return blocks(c / d * d, d); };
            for (Rank r : ranks(p)) {
              const int to = r ^ d;
              const bool two = plays_two(r) && d < half, both = two && plays_two(to);
              if (to < p) send(r, to, both ? of(r) + of(r + half) : of(r), copy);
              if (two && !both) send(r, to + half, of(r + half), copy);
              if (to >= p && d < half) send(r, to - half, of(r), copy);
            }
          }};
}
inline Schedule halving_doubling_ghosts_all_reduce(int p) {
  return reduce_scatter_then(ghosts_all_gather(p));
}

}  // namespace rankine
