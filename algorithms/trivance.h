// Trivance: all-reduce on rings and tori with both ports of a dimension at once, partners at
// distance 1, 3, 9 ... to either side.
// Juerss, Addanki & Schmid, "Trivance: Latency-Optimal AllReduce by Shortcutting Multiport
// Networks", 2026; sections 4 and 5. For sizes that are no powers of three the paper's rules leave
// ranks out or count them twice (papers.md); what stands here is right for every size, and the
// paper's own for powers of three.
//   n ranks of a line    s = ceil(log3 n)    d distance
#pragma once

#include "algorithms/run_sums.h"
#include "algorithms/schedule/combine.h"
#include "algorithms/torus_turns.h"

namespace rankine {

// How far a block travels: down to -down and up to +up, n - 1 = up + down. The ternary digits of
// both are 0 and 1, so that every rank on the way hears of the block once: a digit 2 of n - 1 goes
// to both, a digit 1 to the one that is behind.
struct Reach {
  int down = 0, up = 0;
};
Reach trivance_reach(int n);

// The all-gather (the reduce-scatter is its dual), farthest partners first. At distance d a block
// has reached the multiples of 3d, and goes one d further up and down, as far as it is to go.
Schedule trivance_line(int n);

inline Schedule trivance_all_gather(const std::vector<int>& dims) {
  return torus_all_gather(dims, {trivance_line}, Turns::rotating);
}
inline Schedule trivance_reduce_scatter(const std::vector<int>& dims) {
  return dual(trivance_all_gather(dims));
}
inline Schedule trivance_all_reduce(const std::vector<int>& dims) {
  return reduce_scatter_then(trivance_all_gather(dims));
}

// In s rounds, whole vectors in every message: of the plans by sums over runs (run_sums.h) one with
// the least load on the busiest links and the fewest of them to cross, both together; of all such
// plans up to 81 ranks, of many beyond. For powers of three Algorithm 1 of the paper.
RunPlan trivance_plan(int n);
inline Schedule trivance_latency_line(int n) { return run_sums_all_reduce(n, trivance_plan(n)); }
inline Schedule trivance_latency_all_reduce(const std::vector<int>& dims) {
  return torus_all_reduce(dims, trivance_latency_line, static_cast<int>(dims.size()));
}

}  // namespace rankine
