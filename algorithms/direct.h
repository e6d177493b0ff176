// Direct: one round, everyone to everyone. In shared memory it needs no network at all, and it is
// what a flat switch does; it pays with N - 1 concurrent messages per rank.
//   p ranks and blocks    r rank
#pragma once

#include "algorithms/schedule/combine.h"

namespace rankine {

// Everyone hands its own block to all others: one multicast each.
inline Schedule direct_all_gather(int p) {
  return {p, p, p > 1 ? 1 : 0, [p](int, Send send) {
            for (Rank r : ranks(p)) send(r, ranks_from(r + 1, p - 1), block(r), copy);
          }};
}

inline Schedule direct_reduce_scatter(int p) {
  return {p, p, p > 1 ? 1 : 0, [p](int, Send send) {
            for (Rank r : ranks(p)) {
              for (int i = 1; i < p; ++i) send(r + i, r, block(r), reduce);
            }
          }};
}

// One-shot: everyone reads all vectors and adds them up by itself.
inline Schedule direct_all_reduce_one_shot(int p) {
  return {p, 1, p > 1 ? 1 : 0, [p](int, Send send) {
            for (Rank r : ranks(p)) {
              for (int i = 1; i < p; ++i) send(r + i, r, block(0), reduce);
            }
          }};
}

// Two-shot: everyone adds up one block, then hands it to all.
inline Schedule direct_all_reduce_two_shot(int p) {
  return then(named("reduce-scatter", direct_reduce_scatter(p)),
              named("all-gather", direct_all_gather(p)));
}

}  // namespace rankine
