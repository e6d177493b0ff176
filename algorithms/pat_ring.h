// PAT between groups and rings inside them, for several ranks per node: first everyone gathers, by
// PAT, the blocks of those that stand in their groups as it does; then the members of a group pass
// what they have round a ring. Every member works, and every byte crosses into a group once.
// Jeaugey, arXiv:2506.20252 (whose implementation has one rank per node, and names this).
//   p ranks    g ranks per group    m groups    a blocks per message of PAT at most
#pragma once

#include <algorithm>

#include "algorithms/hierarchical.h"
#include "algorithms/pat.h"

namespace rankine {

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

}  // namespace rankine
