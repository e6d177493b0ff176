// The fold: how an algorithm for q = 2^floor(log2 p) ranks serves any p. The surplus ranks hand
// everything to a neighbour before, and get the result from it after: two more rounds, and once
// more the vector for those neighbours.
// Rabenseifner & Traff, "More efficient reduction algorithms for non-power-of-two number of
// processors", EuroPVM/MPI 2004.
//   core member c is rank 2c, with rank 2c + 1 folded into it, while c < surplus; then rank
//   c + surplus
#pragma once

#include <algorithm>

#include "algorithms/schedule/combine.h"

namespace rankine {

constexpr int core_size(int p) { return 1 << floor_log2(p); }

struct Fold {
  explicit Fold(int p) : core(core_size(p)), surplus(p - core) {}
  Rank rank(int c) const { return c + std::min(c, surplus); }

  int core, surplus;
};

// From each pair's even rank to its odd one: what(odd rank), in one round.
template <class What>
Schedule unfold(int p, int blocks, const What& what) {
  const int surplus = Fold(p).surplus;
  return {p, blocks, surplus > 0 ? 1 : 0, [surplus, what](int, Send send) {
            for (int i = 0; i < surplus; ++i) send(2 * i, 2 * i + 1, what(2 * i + 1), copy);
          }};
}

inline Schedule in_core(int p, const Schedule& core) {
  return on({p, core.blocks, [fold = Fold(p)](Rank c) { return fold.rank(c); }}, core);
}

inline Schedule folded_all_reduce(int p, const Schedule& core) {
  const Schedule out = unfold(p, core.blocks, [n = core.blocks](Rank) { return blocks(0, n); });
  return then(then(dual(out), in_core(p, core)), out);
}

// `core` takes the p blocks as the pairs have them: those of ranks 2c and 2c + 1 at 2c.
inline Schedule folded_all_gather(int p, const Schedule& core) {
  const Schedule in{p, p, Fold(p).surplus > 0 ? 1 : 0, [n = Fold(p).surplus](int, Send send) {
                      for (int i = 0; i < n; ++i) send(2 * i + 1, 2 * i, block(2 * i + 1), copy);
                    }};
  const Schedule out = unfold(p, p, [p](Rank odd) { return blocks(odd + 1, p - 1); });
  return then(then(in, in_core(p, core)), out);
}

}  // namespace rankine
