// Recursive doubling: in round k partners at distance 2^k exchange everything that they have.
// Thakur, Rabenseifner & Gropp, "Optimization of collective communication operations in MPICH",
// IJHPCA 19(1), 2005. Recursive multiplying: groups of x, at distances x^k, so that x - 1 messages
// keep as many ports busy. Ruefenacht, Bull & Booth, "Generalisation of recursive doubling for
// AllReduce", Parallel Computing 69, 2017; MPICH 4 (recursive exchange) and UCC (knomial).
//   p ranks    x radix    q = x^floor(log_x p) of them in the core (fold.h)    c core member
//   k round
#pragma once

#include "algorithms/fold.h"

namespace rankine {

// visit(c, partner) for every two members whose numbers to base x differ in that place only: the
// next one of its group for everybody, then the one after that.
template <class Visit>
void for_each_partner(int q, int x, int place, const Visit& visit) {
  const int d = power_of(x, place);
  for (int j = 1; j < x; ++j) {
    for (Rank c : ranks(q)) visit(c, c + ((c / d % x + j) % x - c / d % x) * d);
  }
}

inline Schedule recursive_doubling_all_reduce(int p, int x = 2) {
  const int q = core_size(p, x);
  const Schedule core{q, 1, floor_log(x, q), [q, x](int k, Send send) {
                        for_each_partner(q, x, k, [&](Rank c, Rank partner) {
                          send(c, partner, block(0), reduce);
                        });
                      }};
  return folded_all_reduce(p, core);
}

// The x^k members of c's aligned group have the blocks of all of them, and those of the ranks
// folded into them: one interval.
inline Schedule recursive_doubling_all_gather(int p, int x = 2) {
  const Fold fold(p, core_size(p, x));
  const Schedule core{fold.core, p, floor_log(x, fold.core), [fold, x](int k, Send send) {
                        const int d = power_of(x, k);
                        for_each_partner(fold.core, x, k, [&](Rank c, Rank partner) {
                          const Rank first = fold.rank(c / d * d), end = fold.rank(c / d * d + d);
                          send(c, partner, blocks(first, end - first), copy);
                        });
                      }};
  return folded_all_gather(p, core);
}

// The farthest partners first, when messages are smallest (MPICH's distance halving): of l rounds,
// in round k member c has the blocks of every x^(l - k)th member.
inline Schedule recursive_doubling_far_all_gather(int p, int x = 2) {
  const Fold fold(p, core_size(p, x));
  const int l = floor_log(x, fold.core);
  const Schedule core{fold.core, p, l, [fold, x, l](int k, Send send) {
                        const int d = power_of(x, l - k);
                        for_each_partner(fold.core, x, l - 1 - k, [&](Rank c, Rank partner) {
                          BlockSet what;
                          for (int i = c % d; i < fold.core; i += d) {
                            what.list.append(Run{fold.rank(i), fold.rank(i + 1) - fold.rank(i), 1});
                          }
                          send(c, partner, what, copy);
                        });
                      }};
  return folded_all_gather(p, core);
}

// Recursive halving: the same, reversed in time.
inline Schedule recursive_halving_reduce_scatter(int p, int x = 2) {
  return dual(recursive_doubling_all_gather(p, x));
}
inline Schedule recursive_halving_near_reduce_scatter(int p, int x = 2) {
  return dual(recursive_doubling_far_all_gather(p, x));
}

}  // namespace rankine
