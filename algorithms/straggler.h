// All-reduces for one late rank and for one slow rank.
//
// StragglAR, for a late rank, the last one. While it is on its way, the others reduce-scatter their
// vectors round a ring, a block each. Then it adds its vector to one block after the other,
// with the rank that has the others' sum, and finished blocks spread meanwhile. Devraj, Ding,
// Kumar, Kleinberg & Singh, "Efficient AllReduce with stragglers", arXiv:2505.23523, 2025.
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

// OptCC, for a slow rank: network failures have left it a part of its bandwidth, half or more. The
// other ranks form a ring. Each segment of the vector passes four stages:
//
//   1 a reduce-scatter round the ring: a block per rank of the ring
//   2 the slow rank sends its part of each block to the block's owner
//   3 each owner sends its sum to the slow rank
//   4 an all-gather round the ring
//
// Stages 1 and 2 of a segment run together, with stages 3 and 4 of the segment before. Chen, Jiang,
// Yu, Wang, Xiong, Wang & Liu, "Don't let a few network failures slow the entire AllReduce",
// arXiv:2606.01680, 2026. Abstract and introduction were at hand; they state four pipelined stages,
// and a summary a closed form without idle ports. Ours are the division into stages, and the
// rounds: a period of 2n - 1 rounds per segment, in each of which a rank of the ring sends one
// message and receives one. In its round 2j the ring leads through the slow rank: j sends to it,
// and it to j +
// 1. In other rounds j passes on a block to j + 1, for stages 1 and 4 in turn.
//   p ranks    n = p - 1 ranks in the ring    s segments
//
// A vector of M bytes and b seconds per byte, c b at the slow rank: in a segment a rank of the ring
// sends 2 (n - 1) blocks and one more at the slow rank's speed, so the steady state takes (2 (n -
// 1) + c) / n M b for c <= 2; for c = 2 no port is ever idle, and 2 M b is the least, because the
// slow rank must receive M bytes. Filling the pipeline adds a part of 1 / s.
Schedule optcc_all_reduce(int p, Rank slow, int s);

}  // namespace rankine
