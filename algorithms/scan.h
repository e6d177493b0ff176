// The inclusive scan: rank r ends with the sum of the contributions of ranks 0 to r. Every sum is
// of a run of ranks, put together in their order, so operations need not commute. Any p. Chain:
// Blelloch, "Prefix sums and their applications", 1990. Up and down a binomial tree: Brent & Kung,
// "A regular layout for parallel adders", IEEE Trans. Computers C-31(3), 1982. Doubling distances:
// Hillis & Steele, "Data parallel algorithms", CACM 29(12), 1986.
//   p ranks    r rank    k round    s segments    d distance
#pragma once

#include "algorithms/schedule/combine.h"

namespace rankine {

inline Schedule chain_scan(int p, int s) {
  const Schedule hops{p, 1, p - 1, [](int k, Send send) { send(k, k + 1, block(0), reduce); }};
  return pipelined(hops, s);
}

// One round: everyone hears all before it, directly. By distance, as in direct.h.
inline Schedule direct_scan(int p) {
  return {p, 1, p > 1 ? 1 : 0, [p](int, Send send) {
            for (int d = 1; d < p; ++d) {
              for (Rank r = 0; r + d < p; ++r) send(r, r + d, block(0), reduce);
            }
          }};
}

// Up: a rank whose number ends in k + 1 ones adds what the half before its own has. Down: who has
// everything from rank 0 on tells the rank that is half as far away as the next that has.
inline Schedule binomial_scan(int p) {
  const auto hop = [p](int k, Rank first, Send send) {  // from every 2^(k + 1)th rank, 2^k further
    for (Rank r = first; r + (1 << k) < p; r += 2 << k) send(r, r + (1 << k), block(0), reduce);
  };
  const int down = floor_log2(2 * p / 3);
  const Schedule sweep_up{p, 1, floor_log2(p),
                          [hop](int k, Send send) { hop(k, (1 << k) - 1, send); }};
  const Schedule sweep_down{p, 1, down, [hop, down](int k, Send send) {
                              hop(down - 1 - k, (2 << (down - 1 - k)) - 1, send);
                            }};
  return then(named("up", sweep_up), named("down", sweep_down));
}

// In round k everyone tells the rank 2^k to the right, which then has twice as many.
inline Schedule hillis_steele_scan(int p) {
  return {p, 1, ceil_log2(p), [p](int k, Send send) {
            for (Rank r = 0; r + (1 << k) < p; ++r) send(r, r + (1 << k), block(0), reduce);
          }};
}

}  // namespace rankine
