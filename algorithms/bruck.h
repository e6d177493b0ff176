// This header makes the schedules of Bruck's algorithms: the dissemination barrier, all-gather,
// reduce-scatter and all-to-all with any radix, and the forms with two ports on tori.
//
// The dissemination barrier: in round k every rank signals the ranks d, 2d ... (x - 1) d to the
// right, d = x^k; a rank that has completed all rounds has heard, directly or not, from all ranks.
// Any p. Hensgen, Finkel & Manber, "Two algorithms for barrier synchronization", IJPP 17(1), 1988,
// for radix x = 2; MPICH 4 has any.
//   p ranks    x radix    k round    d distance
// The code states rank 0's part (schedule/rotation_symmetric.h).
#pragma once

#include <algorithm>
#include <vector>

#include "algorithms/direct.h"
#include "algorithms/run_sums.h"
#include "algorithms/schedule/combine.h"
#include "algorithms/schedule/rotation_symmetric.h"
#include "algorithms/torus.h"

namespace rankine {

inline Schedule dissemination_barrier(int p, int x = 2) {
  return rotation_symmetric({p, 1, ceil_log(x, p),
                             [p, x](int k, Send send) {
                               const int d = power_of(x, k);
                               for (int j = 1; j < x && j * d < p; ++j)
                                 send(0, j * d, block(0), reduce);
                             }},
                            Moves::nothing);
}

// Bruck: ceil(log_x p) rounds for any p, with partners at distances d, 2d ... (x - 1) d modulo p, d
// = x^k. With radix x = 2 one message per round; with more, one for every port. Bruck, Ho, Kipnis,
// Upfal & Weathersby, "Efficient algorithms for all-to-all communications in multiport
// message-passing systems", IEEE TPDS 8(11), 1997. MPICH 4 calls it k-Bruck.
//   p ranks    x radix    k round    d distance    j messages of a round
// The code states rank 0's part (schedule/rotation_symmetric.h).

// Round k: rank 0 has the blocks 0 ... d - 1, and sends them to the left; in the last round only
// the blocks that are missing there.
inline Schedule bruck_all_gather(int p, int x = 2) {
  return rotation_symmetric({p, p, ceil_log(x, p),
                             [p, x](int k, Send send) {
                               const int d = power_of(x, k);
                               for (int j = 1; j < x && j * d < p; ++j) {
                                 send(0, -j * d, blocks(0, std::min(d, p - j * d)), copy);
                               }
                             }},
                            Moves::with_rank);
}

inline Schedule bruck_reduce_scatter(int p, int x = 2) { return dual(bruck_all_gather(p, x)); }

// A block with way w to go (from its source to its destination, modulo p) moves by j d in each
// round in which w has a digit j other than 0. Before round k it has gone w mod d: the paper's
// rotations, before and after, only change where it lies in memory, so a schedule omits them.
//   way j d of a round
inline BlockSet with_digit(int p, int x, int way) {
  const int d = power_of(x, floor_log(x, way));
  BlockSet moving;
  for (int w = way; w < p; ++w) {
    if (w / d % x == way / d) moving.list.append(pair_of(p, -(w % d), w - w % d));
  }
  return moving;
}

inline Schedule bruck_all_to_all(int p, int x = 2) {
  return rotation_symmetric({p, p * p, ceil_log(x, p),
                             [p, x](int k, Send send) {
                               const int d = power_of(x, k);
                               for (int way = d; way < std::min(x * d, p); way += d) {
                                 send(0, way, with_digit(p, x, way), copy);
                               }
                             }},
                            Moves::with_pair);
}

// ParLogNa: a round for every digit of every place, so that each rank sends one message at a time;
// the radix leads from Bruck's rounds (x = 2) to pairwise exchange (x = p). Blocks may differ in
// size. Fan, Domke, Ba & Kumar, "Parameterized algorithms for non-uniform all-to-all", HPDC 2025;
// in their preprint TuNA (arXiv:2411.02581).
inline Schedule parlogna_all_to_all(int p, int x) {
  std::vector<int> ways;
  for (int d = 1; d < p; d *= x) {
    for (int way = d; way < std::min(x * d, p); way += d) ways.push_back(way);
  }
  const int rounds = static_cast<int>(ways.size());
  return rotation_symmetric({p, p * p, rounds,
                             [p, x, ways](int k, Send send) {
                               send(0, at(ways, k), with_digit(p, x, at(ways, k)), copy);
                             }},
                            Moves::with_pair);
}

// Bruck's algorithms with two ports: ceil(log3 n) rounds, partners at distance 3^k and 2 * 3^k, all
// on one side, in the reduce-scatter too. On a ring every message goes up, in one direction, unless
// the network routes it the shorter way (Routing in engine/network/wiring.h). Bruck, Ho, Kipnis,
// Upfal & Weathersby, IEEE TPDS 8(11), 1997, with k = 2 ports; on tori as in Trivance, section 2.4.
// The all-gather runs farthest first, when messages are smallest, as in Trivance's evaluation
// (after Jeaugey's PAT, arXiv:2506.20252). A line's code states rank 0's part
// (schedule/rotation_symmetric.h).
//   n ranks of a line    s = ceil(log3 n)    d = 3^(s - 1 - k) distance

// In round k a rank has the blocks with a way so far, 0 ... n - 1, that is a multiple of 3d, and
// passes them on by d and by 2d, unless that is beyond n - 1.
inline Schedule bruck_ternary_line(int n) {
  const int s = ceil_log3(n);
  return rotation_symmetric({n, n, s,
                             [n, s](int k, Send send) {
                               const int d = power_of_three(s - 1 - k);
                               for (const int way : {d, 2 * d}) {
                                 const int count = n > way ? (n - 1 - way) / (3 * d) + 1 : 0;
                                 if (count == 0) continue;
                                 send(0, way, blocks(-3 * d * (count - 1), count, 3 * d), copy);
                               }
                             }},
                            Moves::with_rank);
}

inline Schedule bruck_ternary_all_gather(const std::vector<int>& dims) {
  return torus_all_gather(dims, {bruck_ternary_line}, Turns::rotating);
}
// The dual of an all-gather that goes down goes up.
inline Schedule bruck_ternary_reduce_scatter(const std::vector<int>& dims) {
  const auto other_way = [](int a) { return mirrored(bruck_ternary_line(a)); };
  return dual(torus_all_gather(dims, {other_way}, Turns::rotating));
}
inline Schedule bruck_ternary_all_reduce(const std::vector<int>& dims) {
  return then(named("reduce-scatter", bruck_ternary_reduce_scatter(dims)),
              named("all-gather", bruck_ternary_all_gather(dims)));
}

// Every rank has the sum over a run to its left, without its own vector. A round triples it and
// adds the next ternary digit of n - 1: the digit is the number of senders, of the two, that send
// the run with their own vector; the others send it without (Bar-Noy, Kipnis & Schieber, Parallel
// Processing Letters 3(1), 1993, for one port; Bruck & Ho, ibid. 3(4), 1993).
inline RunPlan bruck_ternary_plan(int n) {
  RunPlan plan;
  Runs runs;
  for (int d = power_of_three(std::max(0, ceil_log3(n) - 1)); d > 0 && n > 1; d /= 3) {
    const int digit = (n - 1) / d % 3;
    const Runs theirs = runs;
    plan.emplace_back();
    for (int sender = 0; sender < 2; ++sender) {
      const RunParts parts{true, sender < digit, false};
      if (theirs.length(parts) == 0) continue;
      plan.back().push_back(message_from_left(theirs, runs, parts));
      runs.left += theirs.length(parts);
    }
  }
  return plan;
}

inline Schedule bruck_ternary_latency_line(int n) {
  return run_sums_all_reduce(n, bruck_ternary_plan(n));
}
inline Schedule bruck_ternary_latency_all_reduce(const std::vector<int>& dims) {
  return torus_all_reduce(dims, bruck_ternary_latency_line, static_cast<int>(dims.size()));
}

}  // namespace rankine
