// The fold: how an algorithm for q = x^floor(log_x p) ranks serves any p. The surplus ranks hand
// everything to a neighbour before, and get the result from it after: two more rounds, and once
// more the vector for each of those neighbours.
// Rabenseifner & Traff, "More efficient reduction algorithms for non-power-of-two number of
// processors", EuroPVM/MPI 2004, for radix x = 2.
//   The p ranks are shared out to the q core members in order, to the first ones one more each
//   (with radix two: pairs, then single ranks); core member c is the first rank of its share.
#pragma once

#include <algorithm>

#include "algorithms/schedule/combine.h"

namespace rankine {

constexpr int core_size(int p, int x = 2) { return power_of(x, floor_log(x, p)); }

struct Fold {
  Fold(int p, int q) : core(q), share(p / q), longer(p % q) {}
  Rank rank(int c) const { return c * share + std::min(c, longer); }
  bool has(Rank r) const {  // is r a core member?
    return (r < longer * (share + 1) ? r % (share + 1) : (r - longer) % share) == 0;
  }
  int surplus() const { return share - (longer > 0 ? 0 : 1); }  // ranks, of core member 0

  int core, share, longer;
};

// visit(core member's rank, surplus rank): the first surplus rank of everybody, then the second, so
// that nobody's second message keeps another's first one waiting.
template <class Visit>
void for_each_surplus(const Fold& fold, const Visit& visit) {
  for (int i = 1; i <= fold.surplus(); ++i) {
    for (int c = 0; c < fold.core && fold.rank(c) + i < fold.rank(c + 1); ++c) {
      visit(fold.rank(c), fold.rank(c) + i);
    }
  }
}

// From each core member to its surplus ranks: what(surplus rank), in one round.
template <class What>
Schedule unfold(int p, const Fold& fold, int blocks, const What& what) {
  return {p, blocks, fold.surplus() > 0 ? 1 : 0, [fold, what](int, Send send) {
            for_each_surplus(fold, [&](Rank c, Rank r) { send(c, r, what(r), copy); });
          }};
}

inline Schedule in_core(int p, const Schedule& core) {
  return on({p, core.blocks, [fold = Fold(p, core.ranks)](Rank c) { return fold.rank(c); }}, core);
}

inline Schedule folded_all_reduce(int p, const Schedule& core) {
  const Schedule out =
      unfold(p, Fold(p, core.ranks), core.blocks, [n = core.blocks](Rank) { return blocks(0, n); });
  return then(then(dual(out), in_core(p, core)), out);
}

// The same with radix two, and the additions of the fold shared out: in a pair each adds up one
// half of the vector for both, and the surplus rank gives its half away. One more round, and half
// of the time for adding up.
inline Schedule half_exchange_all_reduce(int p, const Schedule& core) {
  const Fold fold(p, core.ranks);
  const int n = core.blocks, half = n / 2;
  const Schedule in{p, n, fold.surplus() > 0 ? 2 : 0, [=](int k, Send send) {
                      for_each_surplus(fold, [&](Rank c, Rank r) {
                        if (k == 0) send(r, c, blocks(0, half), reduce);
                        if (k == 0) send(c, r, blocks(half, n - half), reduce);
                        if (k == 1) send(r, c, blocks(half, n - half), copy);
                      });
                    }};
  const Schedule out = unfold(p, fold, n, [n](Rank) { return blocks(0, n); });
  return then(then(in, in_core(p, core)), out);
}

// `core` takes the p blocks as its members have them: each its own and those of its surplus ranks.
inline Schedule folded_all_gather(int p, const Schedule& core) {
  const Fold fold(p, core.ranks);
  const Schedule in{p, p, fold.surplus() > 0 ? 1 : 0, [fold](int, Send send) {
                      for_each_surplus(fold, [&](Rank c, Rank r) { send(r, c, block(r), copy); });
                    }};
  const Schedule out = unfold(p, fold, p, [p](Rank r) { return blocks(r + 1, p - 1); });
  return then(then(in, in_core(p, core)), out);
}

}  // namespace rankine
