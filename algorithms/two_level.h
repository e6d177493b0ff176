// Two levels in shared memory: groups of neighbours (the ranks of a node, or of an L3) and what
// must cross between them. Every byte crosses into a group, or out of it, exactly once, and all
// members work: each is its group's leader for a part of the blocks. Rank r is member r % g of
// group r / g. Li, Hoefler & Snir, "NUMA-aware shared-memory collective communication for MPI",
// HPDC 2013.
//   p ranks    g ranks per group    m groups    j group    b block    i member
#pragma once

#include <algorithm>

#include "algorithms/schedule/combine.h"

namespace rankine {

// Who brings block b, which starts at rank b, into group j: the member that stands where b stands
// in its own group, or, in a last group with fewer members, the one that follows from taking turns.
inline Rank holder_of(Block b, int j, int p, int g) {
  return j == b / g ? b : j * g + b % g % std::min(g, p - j * g);
}

// First every block to its holders, a message per group; then in every group from holder to member.
inline Schedule two_level_all_gather(int p, int g) {
  const int m = (p + g - 1) / g;
  const Schedule between{p, p, m > 1 ? 1 : 0, [p, g, m](int, Send send) {
                           for (int i = 1; i < m; ++i) {
                             for (Block b : ranks(p)) {
                               send(b, holder_of(b, (b / g + i) % m, p, g), block(b), copy);
                             }
                           }
                         }};
  std::vector<BlockSet> held(static_cast<std::size_t>(p));
  for (int j = 0; j < m; ++j) {
    for (Block b : ranks(p)) {
      at(held, holder_of(b, j, p, g)).list.append(b);
    }
  }
  const Schedule inside{p, p, g > 1 ? 1 : 0, [p, g, held](int, Send send) {
                          for (int i = 1; i < g; ++i) {
                            for (Rank r : ranks(p)) {
                              const Rank first = r / g * g;
                              const int n = std::min(g, p - first);
                              if (i >= n) continue;
                              send(r, first + (r - first + i) % n, at(held, r), copy);
                            }
                          }
                        }};
  return then(named("between groups", between), named("in groups", inside));
}

inline Schedule two_level_reduce_scatter(int p, int g) { return dual(two_level_all_gather(p, g)); }

inline Schedule two_level_all_reduce(int p, int g) {
  return reduce_scatter_then(two_level_all_gather(p, g));
}

// Block i from the root to member i of every group, then among the members. g divides p.
inline Schedule two_level_broadcast(int p, int g, Rank root) {
  const Schedule between{p, g, p > 1 ? 1 : 0, [p, g, root](int, Send send) {
                           for (int i = 1; i < p; ++i)
                             send(root, root + i, block((root + i) % p % g), copy);
                         }};
  const Schedule inside{p, g, g > 1 ? 1 : 0, [p, g, root](int, Send send) {
                          for (int i = 1; i < g; ++i) {
                            for (Rank r : ranks(p)) {
                              const Rank to = r / g * g + (r + i) % g;
                              if (to != root) send(r, to, block(r % g), copy);
                            }
                          }
                        }};
  return then(named("between groups", between), named("in groups", inside));
}

inline Schedule two_level_reduce(int p, int g, Rank root) {
  return dual(two_level_broadcast(p, g, root));
}

}  // namespace rankine
