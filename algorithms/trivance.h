// Trivance is an all-reduce on rings and tori that uses both ports of a dimension at once, with
// partners at distance 1, 3, 9 ... to either side. Juerss, Addanki & Schmid, "Trivance:
// Latency-Optimal AllReduce by Shortcutting Multiport Networks", 2026; sections 4 and 5. For sizes
// that are no powers of three the paper's rules leave ranks out or count them twice (papers.md);
// the rules here are right for every size, and the paper's own for powers of three.
//   n ranks of a line    s = ceil(log3 n)    d distance
#pragma once

#include <utility>
#include <vector>

#include "algorithms/run_sums.h"
#include "algorithms/schedule/combine.h"
#include "algorithms/schedule/rotation_symmetric.h"
#include "algorithms/torus.h"

namespace rankine {

// The bandwidth form's distances, farthest first: with h of n / 2 ranks left to reach on either
// side, the distance is a third of 2h + 1, rounded down, and h falls by it. Their sum is n / 2, and
// there are s of them; for powers of three they are powers of three.
std::vector<int> trivance_thirds(int n);

// The all-gather of a line (the reduce-scatter is its dual), on a torus with `dimensions` such
// lines. It takes the rule with the smaller load on the busiest links there, and on a torus with
// unequal sizes the best rule for each size:
//
//   thirds  A block has reached the ranks at a way from it that is a sum of the distances so far,
//           each forward, back or left out. In every round it goes to the ranks that one more
//           such step reaches and that lack it, as many up as down: of n - 1 blocks
//           ceil((n - 1) / 2) either way. If two ways bring a block, the one from the block's own
//           side does. If n is even, one block goes half way round: up on a ring, where the load is
//           never higher. On a torus that is one block per rank along the other lines, and both
//           neighbours have it before the last round: half of the blocks come from either (4 x 4:
//           a link carries 8 blocks instead of 11, where the bound is 7.5).
//   powers  A block travels down to -down and up to +up, n - 1 = up + down, at distances 3^k. The
//           ternary digits of both are 0 and 1, so that every rank on the way receives it once: a
//           digit 2 of n - 1 goes to both, a digit 1 to the one that is behind. It sends more at
//           the nearest distance, which matters on tori, because messages then are largest.
Schedule trivance_line(int n, int dimensions = 1);
Schedule trivance_powers_line(int n);  // by powers always, which is nearer to the paper

Schedule trivance_all_gather(const std::vector<int>& dims);
inline Schedule trivance_reduce_scatter(const std::vector<int>& dims) {
  return dual(trivance_all_gather(dims));
}
inline Schedule trivance_all_reduce(const std::vector<int>& dims) {
  return reduce_scatter_then(trivance_all_gather(dims));
}
// The transfers of the all-gather with the root's blocks, D trees side by side (section 8).
inline Schedule trivance_broadcast(const std::vector<int>& dims, Rank root) {
  return broadcast_of(trivance_all_gather(dims), root);
}
inline Schedule trivance_reduce(const std::vector<int>& dims, Rank root) {
  return reduce_of(trivance_all_gather(dims), root);
}

inline Schedule trivance_powers_all_reduce(const std::vector<int>& dims) {
  return reduce_scatter_then(torus_all_gather(dims, {trivance_powers_line}, Turns::rotating));
}

// In s rounds, whole vectors in every message: the plan by sums over runs (run_sums.h) with the
// least sum of the load on the busiest links and the links crossed, among all plans up to 81 ranks,
// among many beyond. For powers of three it is Algorithm 1 of the paper.
RunPlan trivance_plan(int n);
inline Schedule trivance_latency_line(int n) { return run_sums_all_reduce(n, trivance_plan(n)); }
inline Schedule trivance_latency_all_reduce(const std::vector<int>& dims) {
  return torus_all_reduce(dims, trivance_latency_line, static_cast<int>(dims.size()));
}

// Trivance with all 2D ports of a torus in every round: log_(2D+1) N rounds, in each of which every
// rank exchanges with the 2D ends of a cross about it. Juerss, Addanki & Schmid, "Trivance", 2026,
// section 7: "it is theoretically possible to simultaneously utilize all available ports to
// complete in log_(2D+1) N steps"; the paper gives no pattern. In one dimension this is Trivance
// itself; in two and three dimensions the sizes of the torus must be equal powers of p.
//   D dimensions    p = 2D + 1    a = p^m the size of each    N = a^D    s = D m rounds
//
// A round adds a digit: 0, or a step to one of the 2D ends. Steps of round i D + l are +-p^i v for
// the D vectors v of cross l. The sums of one digit of each of the D crosses meet every residue of
// Z^D modulo p once (in two dimensions: 0, +-1, +-i are the residues modulo 2 + i, and modulo 2 - i
// again; the crosses are of 1 and i, and of those times 2 + i), so that those of s digits meet
// every rank once. Cross 0 is a rank's own neighbours.

// By round, nearest first: the ends of rank 0's cross. Two and three dimensions.
std::vector<std::vector<Rank>> cross_ends(const std::vector<int>& dims);

// Farthest first: a rank passes on all its blocks.
Schedule trivance_cross_all_gather(const std::vector<int>& dims);
inline Schedule trivance_cross_reduce_scatter(const std::vector<int>& dims) {
  return dual(trivance_cross_all_gather(dims));
}
inline Schedule trivance_cross_all_reduce(const std::vector<int>& dims) {
  return reduce_scatter_then(trivance_cross_all_gather(dims));
}

// Whole vectors, nearest first: a rank adds up its cross.
inline Schedule trivance_cross_latency_all_reduce(const std::vector<int>& dims) {
  if (dims.size() == 1) return trivance_latency_all_reduce(dims);
  auto ends = cross_ends(dims);
  const int s = static_cast<int>(ends.size());
  const auto part = [ends = std::move(ends)](int k, Send send) {
    for (const Rank end : at(ends, k)) send(0, end, block(0), reduce);
  };
  return rotation_symmetric({Torus(dims).ranks(), 1, s, part}, Rotation(dims, 1, Moves::nothing));
}

}  // namespace rankine
