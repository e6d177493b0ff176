// This header makes the schedules of recursive doubling, and Fold lets an algorithm for q =
// x^floor(log_x p) ranks serve any p: the surplus ranks send all their data to a neighbour before,
// and get the result from it after: two rounds more, and the vector once. Rabenseifner & Traff,
// "More efficient reduction algorithms for non-power-of-two number of processors", EuroPVM/MPI
// 2004, for radix x = 2.
//   The p ranks are shared out to the q core members in order, one more each to the first ones
//   (with radix two: pairs, then single ranks); core member c is the first rank of its share.
#pragma once

#include <algorithm>

#include "algorithms/schedule/combine.h"

namespace rankine {

constexpr int core_size(int p, int x = 2) { return power_of(x, floor_log(x, p)); }

struct Fold {
  Fold(int p, int q) : ranks(p), core(q), share(p / q), longer(p % q) {}
  Rank rank(int c) const { return c * share + std::min(c, longer); }
  Rank member_of(Rank r) const {  // the core member with r in its share
    return r < longer * (share + 1) ? r - r % (share + 1) : r - (r - longer) % share;
  }
  int surplus() const { return share - (longer > 0 ? 0 : 1); }  // surplus ranks of core member 0
  int ranks, core, share, longer;
};

// visit(core member's rank, surplus rank): the first surplus rank of each member, then the second,
// so that no member's second message delays another's first one.
template <class Visit>
void for_each_surplus(const Fold& fold, const Visit& visit) {
  for (int i = 1; i <= fold.surplus(); ++i) {
    for (int c = 0; c < fold.core && fold.rank(c) + i < fold.rank(c + 1); ++c) {
      visit(fold.rank(c), fold.rank(c) + i);
    }
  }
}

// Rounds between core members c and their surplus ranks r: tell(k, c, r, send).
template <class Tell>
Schedule with_surplus(const Fold& fold, int n, const Tell& tell, int rounds = 1) {
  return {fold.ranks, n, fold.surplus() > 0 ? rounds : 0, [fold, tell](int k, Send send) {
            for_each_surplus(fold, [&](Rank c, Rank r) { tell(k, c, r, send); });
          }};
}
inline Schedule sum_to_surplus(const Fold& fold, int n) {
  const auto tell = [n](int, Rank c, Rank r, Send send) { send(c, r, blocks(0, n), copy); };
  return with_surplus(fold, n, tell);
}
inline Schedule in_core(int p, const Schedule& core) {
  return on({p, core.blocks, [fold = Fold(p, core.ranks)](Rank c) { return fold.rank(c); }}, core);
}

inline Schedule folded_all_reduce(int p, const Schedule& core) {
  const Schedule out = sum_to_surplus(Fold(p, core.ranks), core.blocks);
  return then(then(dual(out), in_core(p, core)), out);
}

// As folded_all_reduce() with radix two, with the additions of the fold shared: in a pair each rank
// adds up one half of the vector for both, and the surplus rank sends its half. One more round.
inline Schedule half_exchange_all_reduce(int p, const Schedule& core) {
  const Fold fold(p, core.ranks);
  const int n = core.blocks, half = n / 2;
  const auto tell = [n, half](int k, Rank c, Rank r, Send send) {
    if (k == 0) send(r, c, blocks(0, half), reduce);
    if (k == 0) send(c, r, blocks(half, n - half), reduce);
    if (k == 1) send(r, c, blocks(half, n - half), copy);
  };
  return then(then(with_surplus(fold, n, tell, 2), in_core(p, core)), sum_to_surplus(fold, n));
}

// `core` takes the p blocks as its members have them: each its own and those of its surplus ranks.
inline Schedule folded_all_gather(int p, const Schedule& core) {
  const Fold fold(p, core.ranks);
  const auto in = [](int, Rank c, Rank r, Send send) { send(r, c, block(r), copy); };
  const auto out = [p](int, Rank c, Rank r, Send send) { send(c, r, blocks(r + 1, p - 1), copy); };
  return then(then(with_surplus(fold, p, in), in_core(p, core)), with_surplus(fold, p, out));
}

// Recursive doubling: in round k partners at distance 2^k exchange all their data. Thakur,
// Rabenseifner & Gropp, "Optimization of collective communication operations in MPICH", IJHPCA
// 19(1), 2005. Recursive multiplying: groups of x, at distances x^k, so that x - 1 messages keep as
// many ports busy. Ruefenacht, Bull & Booth, "Generalisation of recursive doubling for AllReduce",
// Parallel Computing 69, 2017; MPICH 4 (recursive exchange) and UCC (knomial).
//   p ranks    x radix    q = x^floor(log_x p) core ranks (Fold)    c core member    k round

// visit(c, partner) for every two members that differ, as numbers to base x, in that place only:
// the next one of each member's group, then the one after that.
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

// The farthest partners first, when messages are smallest (MPICH's distance halving): with l
// rounds, in round k member c has the blocks of every x^(l - k)th member.
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

// Recursive halving: the all-gathers reversed in time.
inline Schedule recursive_halving_reduce_scatter(int p, int x = 2) {
  return dual(recursive_doubling_all_gather(p, x));
}
inline Schedule recursive_halving_near_reduce_scatter(int p, int x = 2) {
  return dual(recursive_doubling_far_all_gather(p, x));
}

}  // namespace rankine
