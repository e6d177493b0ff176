// Halving and doubling (Rabenseifner) is an all-reduce with log2 q rounds that halve the vector
// between partners and add, and log2 q rounds that double it again. Thakur, Rabenseifner & Gropp,
// IJHPCA 19(1), 2005. Near first: the largest messages go to the nearest partners. Far first is
// recursive halving, then recursive doubling. With radix x groups of x share the vector in every
// round (MPICH 4, k-reduce-scatter-allgather; UCC, SRA knomial).
//   p ranks    x radix    q = x^l core ranks and blocks (Fold)    c core member    k round
#pragma once

#include <utility>

#include "algorithms/recursive_doubling.h"
#include "algorithms/schedule/stating_order.h"

namespace rankine {

// The number with c's l digits to base x in reverse order.
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
// option 1). The first partner of ghost c, rank c - q / 2, plays it and then has nothing to
// exchange with it: no more rounds than the fold, and no additional vector, but such a rank sends
// two messages in every other round, unless its partner plays a ghost too. This is the all-gather
// half.
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

// Doubling and halving with segments in flight. In every round a rank exchanges with another
// partner, so segments that follow one another a round apart use as many partners at once as there
// are rounds: a rank needs log2 q ports, in the all-reduce by halves two to each partner. With
// fewer ports the segments queue, which saves only rounds ("partner-cycling"). Lu, "Collective
// Algorithms", 2026, appendices B.3 and C.4; the pipelined algorithm: Thakur, Rabenseifner & Gropp,
// IJHPCA 19(1), 2005.
//   p ranks    q = 2^floor(log2 p) core ranks (Fold)    s segments

inline Schedule segments_in_time(Schedule whole, int s, Segments stated) {
  return in_time(pipelined(std::move(whole), s, 1, stated));
}

inline Schedule pipelined_doubling_all_reduce(int p, int s) {
  return segments_in_time(recursive_doubling_all_reduce(p), s, Segments::youngest_first);
}

inline Schedule pipelined_halving_doubling_all_reduce(int p, int s) {
  return segments_in_time(halving_doubling_all_reduce(p), s, Segments::youngest_first);
}

// The oldest segments' messages are the longest.
inline Schedule pipelined_doubling_all_gather(int p, int s) {
  return segments_in_time(recursive_doubling_all_gather(p), s, Segments::oldest_first);
}

// Reversed after it is cut into segments: so the longest messages come first in every round.
inline Schedule pipelined_halving_reduce_scatter(int p, int s) {
  return dual(pipelined_doubling_all_gather(p, s));
}

}  // namespace rankine
