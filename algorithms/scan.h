// This header makes the schedules of scans: after an inclusive scan, rank r has the sum of the
// contributions of ranks 0 to r, after an exclusive one of ranks 0 to r - 1. Every sum is over a
// run of ranks, put together in their order, so operations need not commute. Any p. Chain:
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

// One round: every rank receives from all ranks before it, directly. By distance, as in direct.h.
inline Schedule direct_scan(int p) {
  return {p, 1, p > 1 ? 1 : 0, [p](int, Send send) {
            for (int d = 1; d < p; ++d) {
              for (Rank r = 0; r + d < p; ++r) send(r, r + d, block(0), reduce);
            }
          }};
}

// Up: a rank with a number that ends in k + 1 ones adds the sum of the half before its own. Down: a
// rank with the sum from rank 0 on sends it to the rank half as far away as the next such rank.
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

// In round k every rank sends to the rank 2^k to the right, which then has twice as many
// contributions.
inline Schedule hillis_steele_scan(int p) {
  return {p, 1, ceil_log2(p), [p](int k, Send send) {
            for (Rank r = 0; r + (1 << k) < p; ++r) send(r, r + (1 << k), block(0), reduce);
          }};
}

// The exclusive scan: rank r ends with the sum of the contributions of ranks 0 to r - 1, and rank 0
// keeps its data. Sums are over runs of ranks as in the inclusive scans, which have the sources of
// the first algorithms; a shift, and 1-2-3-doubling: Traff, "Communication round and computation
// efficient exclusive prefix-sums algorithms (for MPI_Exscan)", arXiv:2507.04785, 2025.
//   p ranks    r rank    k round    s segments    d distance

// An exclusive scan from an inclusive one: every rank's vector moves to the rank to the right, and
// all but rank 0 scan.
inline Schedule shifted(int p, Schedule (*scan)(int p)) {
  if (p == 1) return nothing(1, 1);
  const Schedule shift{p, 1, 1, [p](int, Send send) {
                         for (Rank r = 0; r + 1 < p; ++r) send(r, r + 1, block(0), copy);
                       }};
  const Schedule rest = on({p, 1, [](Rank r) { return r + 1; }}, scan(p - 1));
  return then(named("shift", shift), named("scan", rest));
}

// Plane 1 has a rank's own vector, to which it adds the arriving sum, on its way to the next rank.
inline Schedule chain_exscan(int p, int s) {
  Schedule hops{p, 1, p > 1 ? 2 * p - 3 : 0, [p](int k, Send send) {
                  const Rank r = k / 2;
                  if (k % 2 == 1) return send(r + 1, r + 1, block(0), block(0, 1), reduce);
                  for (Rank own = 1; k == 0 && own + 1 < p; ++own) {
                    send(own, own, block(0), block(0, 1), copy);
                  }
                  send(r, r + 1, block(0, r > 0 ? 1 : 0), block(0), copy);
                }};
  hops.planes = 2;
  return pipelined(hops, s, 2);
}

// The sum is collected on plane 1, because a rank's own vector, which is no part of it, is read
// from plane 0 meanwhile.
inline Schedule direct_exscan(int p) {
  Schedule out{p, 1, p > 1 ? 2 : 0, [p](int k, Send send) {
                 for (int d = 1; k == 0 && d < p; ++d) {
                   for (Rank r = 0; r + d < p; ++r) send(r, r + d, block(0), block(0, 1), reduce);
                 }
                 for (Rank r = 1; k == 1 && r < p; ++r) send(r, r, block(0, 1), block(0), copy);
               }};
  out.planes = 2;
  return out;
}

inline Schedule binomial_exscan(int p) { return shifted(p, binomial_scan); }
inline Schedule hillis_steele_exscan(int p) { return shifted(p, hillis_steele_scan); }

// Distances 1, 2, 3, 6, 12 ...: after the first round a rank has one vector, in the second it sends
// that and its own (on plane 1), so after it the next one has three, all before its own; from there
// on the number of vectors doubles. Rank 0 has nothing before its own and takes part in two rounds.
inline Schedule doubling_123_exscan(int p) {
  // With three ranks or fewer no rank sends a sum in the second round, so nothing is added up
  // before it.
  const int messages = p > 1 ? ceil_log2((4 * (p - 1) + 2) / 3) : 0, local = p > 3 ? 1 : 0;
  Schedule out{p, 1, messages + local, [p, local](int round, Send send) {
                 const int k = round == 0 ? 0 : round + 1 - local;
                 if (k == 0) {
                   for (Rank r = 0; r + 1 < p; ++r) send(r, r + 1, block(0), copy);
                   for (Rank r = 1; r + 2 < p; ++r) send(r, r, block(0), block(0, 1), copy);
                 } else if (k == 1) {
                   for (Rank r = 1; r + 2 < p; ++r) send(r, r, block(0), block(0, 1), reduce);
                 } else if (k == 2) {
                   for (Rank r = 0; r + 2 < p; ++r) {
                     send(r, r + 2, block(0, r > 0 ? 1 : 0), block(0), reduce);
                   }
                 } else {
                   const int d = 3 << (k - 3);
                   for (Rank r = 1; r + d < p; ++r) send(r, r + d, block(0), reduce);
                 }
               }};
  out.planes = 2;
  return out;
}

}  // namespace rankine
