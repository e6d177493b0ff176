// An all-reduce for one late rank, the last one. While it is on its way, the others reduce-scatter
// their vectors round a ring, a block each. Then it adds its vector to one block after the other,
// with the rank that has the others' sum, and finished blocks spread meanwhile. Devraj, Ding,
// Kumar, Kleinberg & Singh, "Efficient AllReduce with stragglers" (StragglAR), arXiv:2505.23523,
// 2025.
//   p ranks    p - 1 blocks    q = log2 p    t round after the late rank's arrival
#pragma once

#include "algorithms/schedule/combine.h"

namespace rankine {

// In round t < p - 1 rank t and the late rank exchange block t, and each of the other ranks sends a
// finished block and receives one. For a power of two all blocks are everywhere after p - 2 + q
// rounds, the least: the late rank needs p - 1, and the last block, which two ranks have then, q -
// 1 more. Other p take a greedy choice and a few rounds more (straggler.cc).
Schedule stragglar_all_reduce(int p);

// Numbers of ranks that are no power of two, at most: the choice visits all pairs in every round.
inline constexpr int kMostGreedyRanks = 256;

}  // namespace rankine
