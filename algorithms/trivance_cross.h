// Trivance with all 2D ports of a torus in every round: log_(2D+1) N rounds, in each of which every
// rank exchanges with the 2D ends of a cross about it.
// Juerss, Addanki & Schmid, "Trivance", 2026, section 7: "it is theoretically possible to
// simultaneously utilize all available ports to complete in log_(2D+1) N steps"; the paper gives no
// pattern. This one is Trivance itself in one dimension, of two and three it takes tori whose sizes
// are equal powers of p.
//   D dimensions    p = 2D + 1    a = p^m the size of each    N = a^D    s = D m rounds
//
// A round adds a digit: 0, or a step to one of the 2D ends. Steps of round i D + l are +-p^i v for
// the D vectors v of cross l. The sums of one digit of each of the D crosses meet every residue of
// Z^D modulo p once (in two dimensions: 0, +-1, +-i are the residues modulo 2 + i, and modulo 2 - i
// again; the crosses are of 1 and i, and of those times 2 + i), so that those of s digits meet
// every rank once. Cross 0 is a rank's own neighbours.
#pragma once

#include <utility>
#include <vector>

#include "algorithms/schedule/combine.h"
#include "algorithms/schedule/everyone.h"
#include "algorithms/torus.h"
#include "algorithms/trivance.h"

namespace rankine {

// By round, nearest first: the ends of rank 0's cross. Two and three dimensions.
std::vector<std::vector<Rank>> cross_ends(const std::vector<int>& dims);

// Farthest first: a rank passes on all the blocks it has.
Schedule trivance_cross_all_gather(const std::vector<int>& dims);
inline Schedule trivance_cross_reduce_scatter(const std::vector<int>& dims) {
  return dual(trivance_cross_all_gather(dims));
}
inline Schedule trivance_cross_all_reduce(const std::vector<int>& dims) {
  return reduce_scatter_then(trivance_cross_all_gather(dims));
}

// Whole vectors, nearest first: a rank adds up its cross.
inline Schedule trivance_cross_latency_all_reduce(const std::vector<int>& dims) {
  if (dims.size() == 1) return trivance_latency_line(dims.front());
  auto ends = cross_ends(dims);
  const int s = static_cast<int>(ends.size());
  const auto part = [ends = std::move(ends)](int k, Send send) {
    for (const Rank end : at(ends, k)) send(0, end, block(0), reduce);
  };
  return everyone({Torus(dims).ranks(), 1, s, part}, Rotation(dims, 1, Moves::nothing));
}

}  // namespace rankine
