// This header makes the schedules of PAT (parallel aggregated trees, as NCCL ships it since 2.23)
// and its relatives, PAT with rings and Sparbit. In PAT every block spreads through a separate
// binomial tree, the farthest distance first; all trees run at once, rotated against each other,
// and blocks that travel equally far go in one message of at most a blocks. Jeaugey, "PAT: a new
// algorithm for all-gather and reduce-scatter operations at scale", arXiv:2506.20252.
//   p ranks    q = 2^ceil(log2 p)    a = 2^i blocks per message at most, a <= max(1, q / 2)
//   The code states rank 0's part (schedule/rotation_symmetric.h).
//   w way: the rank w to the right of a block's own receives it from the rank that is w without its
//   lowest bit to the right
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "algorithms/hierarchical.h"
#include "algorithms/schedule/combine.h"
#include "algorithms/schedule/rotation_symmetric.h"

namespace rankine {

constexpr int pat_default_aggregation(int p) { return p > 1 ? 1 << (ceil_log2(p) - 1) : 1; }

// 1 ... d - 1 (d = 2^i) depth first through the binomial tree in which r hangs below r without its
// lowest bit, the largest subtrees first: 4 6 7 5 2 3 1.
inline std::vector<int> depth_first(int d) {
  std::vector<int> order;
  const std::function<void(int, int)> walk = [&](int r, int below) {
    for (int bit = below / 2; bit > 0; bit /= 2) {
      order.push_back(r | bit);
      walk(r | bit, bit);
    }
  };
  walk(0, d);
  return order;
}

// The offsets served in each round. First a trees grow from each block's own rank, log2 a rounds
// with 1, 2, 4 ... a / 2 blocks per message; then each of the a roots' subtrees of q / a ranks is
// walked depth first, all a at once: q / a - 1 rounds, or p - 1 if a = 1. Depth first bounds the
// buffers.
inline std::vector<std::vector<int>> pat_offsets(int p, int a) {
  const int q = 1 << ceil_log2(p);
  std::vector<std::vector<int>> rounds;
  const auto add_round = [&](int first, int stride) {
    if (first < p) rounds.emplace_back();
    for (int w = first; w < p; w += stride) rounds.back().push_back(w);
  };
  for (int d = q / 2; d >= q / a && a > 1; d /= 2) add_round(d, 2 * d);
  for (int w : depth_first(q / a)) add_round(w, q / a);
  return rounds;
}

inline Schedule pat_all_gather(int p, int a) {
  auto offsets = pat_offsets(p, a);
  const int rounds = static_cast<int>(offsets.size());
  return rotation_symmetric({p, p, rounds,
                             [offsets = std::move(offsets)](int k, Send send) {
                               const std::vector<int>& served = at(offsets, k);
                               const int d = served.front() & -served.front();
                               BlockSet moving;
                               for (int w : served) moving.list.append(d - w);
                               send(0, d, moving, copy);
                             }},
                            Moves::with_rank);
}

inline Schedule pat_reduce_scatter(int p, int a) { return dual(pat_all_gather(p, a)); }

// PAT between groups and rings inside them, for several ranks per node: first every rank gathers,
// by PAT, the blocks of the ranks at its position in their groups; then the members of a group pass
// their blocks round a ring. Every member works, and every byte crosses into a group once. Jeaugey,
// arXiv:2506.20252 (the paper's implementation has one rank per node, and names this one).
//   p ranks    g ranks per group    m groups    a blocks per message of PAT at most

inline Schedule pat_ring_all_gather(int p, int g, int a) {
  const int m = p / g;
  const Schedule pat = pat_all_gather(m, std::min(a, pat_default_aggregation(m)));
  std::vector<Schedule> alike, groups;
  for (int i = 0; i < g; ++i) {
    alike.push_back(on({p, p, [g, i](Rank j) { return j * g + i; },
                        [g, i](Block b) { return IndexList(b * g + i); }},
                       pat));
  }
  for (int j = 0; j < m; ++j) {
    groups.push_back(on({p, p, [g, j](Rank i) { return j * g + i; },
                         [g, m](Block b) {
                           return IndexList(Run{b, m, g});
                         }},
                        ring_all_gather(g)));
  }
  return then(named("between groups", together(alike)), named("in groups", together(groups)));
}

inline Schedule pat_ring_reduce_scatter(int p, int g, int a) {
  return dual(pat_ring_all_gather(p, g, a));
}

// Sparbit: every block spreads through a separate binomial tree, the farthest distance first, in a
// separate message: nothing is packed, and the largest exchanges stay near. Loch & Koslovski,
// "Sparbit: a new logarithmic-cost and data locality-aware MPI Allgather algorithm",
// arXiv:2109.08751, 2021; Open MPI (coll/base). Its blocks take the routes of PAT's with the
// largest aggregation, which sends those of a round in one message.
//   p ranks    l = ceil(log2 p)    k round    d distance    i way that a block has gone
// The code states rank 0's part (schedule/rotation_symmetric.h).

inline Schedule sparbit_all_gather(int p) {
  return rotation_symmetric({p, p, ceil_log2(p),
                             [p, l = ceil_log2(p)](int k, Send send) {
                               const int d = 1 << (l - 1 - k);
                               for (int i = 0; i + d < p; i += 2 * d) send(0, d, block(-i), copy);
                             }},
                            Moves::with_rank);
}

}  // namespace rankine
