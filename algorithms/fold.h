// The fold: how an algorithm for q = x^floor(log_x p) ranks serves any p. The surplus ranks hand
// all to a neighbour before, and get the result from it after: two rounds more, and the vector
// once. Rabenseifner & Traff, "More efficient reduction algorithms for non-power-of-two number of
// processors", EuroPVM/MPI 2004, for radix x = 2.
//   The p ranks are shared out to the q core members in order, to the first ones one more each
//   (with radix two: pairs, then single ranks); core member c is the first rank of its share.
#pragma once

#include <algorithm>

#include "algorithms/schedule/combine.h"

namespace rankine {

constexpr int core_size(int p, int x = 2) { return power_of(x, floor_log(x, p)); }

struct Fold {
  Fold(int p, int q) : ranks(p), core(q), share(p / q), longer(p % q) {}
  Rank rank(int c) const { return c * share + std::min(c, longer); }
  Rank member_of(Rank r) const {  // the one who has r in its share
    return r < longer * (share + 1) ? r - r % (share + 1) : r - (r - longer) % share;
  }
  int surplus() const { return share - (longer > 0 ? 0 : 1); }  // ranks, of core member 0
  int ranks, core, share, longer;
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

// The same with radix two, and the additions of the fold shared out: in a pair each adds up one
// half of the vector for both, and the surplus rank gives its half away. One more round.
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

}  // namespace rankine
