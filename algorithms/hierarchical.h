// Two levels: groups of neighbours (a node, a socket), and the network between them. Rank r is
// member r % g of group r / g.
//   p ranks    g ranks per group    m = p / g groups    s segments
#pragma once

#include <algorithm>

#include "algorithms/chain.h"
#include "algorithms/direct.h"
#include "algorithms/ring.h"
#include "algorithms/tree.h"

namespace rankine {

// make(n) in every group at once, n its size: the last group has what is left.
template <class Make>
Schedule in_groups(int p, int g, const Make& make) {
  std::vector<Schedule> groups;
  for (Rank first = 0; first < p; first += g) {
    const Schedule inside = make(std::min(g, p - first));
    groups.push_back(on({p, inside.blocks, [first](Rank r) { return first + r; }}, inside));
  }
  return together(std::move(groups));
}

// Reduce to every group's first rank down a chain, ring all-reduce among those, broadcast.
inline Schedule hierarchical_all_reduce(int p, int g, int s) {
  const int m = (p + g - 1) / g;
  const Schedule up = in_groups(p, g, [m, s](int n) { return refined(m, chain_reduce(n, 0, s)); });
  const Schedule down =
      in_groups(p, g, [m, s](int n) { return refined(m, chain_broadcast(n, 0, s)); });
  const Schedule between =
      on({p, m * s, [g](Rank r) { return r * g; }}, refined(s, ring_all_reduce(m)));
  return then(then(named("reduce", up), named("all-reduce", between)), named("broadcast", down));
}

// One leader per group does all that crosses: fewest rounds, for what is small. Three rounds, each
// direct: members to leader, leaders among each other, leader to members.
inline Schedule leaders_all_reduce(int p, int g) {
  const Schedule down = in_groups(p, g, [](int n) { return direct_broadcast(n); });
  const Schedule between =
      on({p, 1, [g](Rank r) { return r * g; }}, direct_all_reduce_one_shot((p + g - 1) / g));
  return then(then(named("reduce", dual(down)), named("all-reduce", between)),
              named("broadcast", down));
}

// Ring reduce-scatter in every group; then all members i reduce their group's block i among each
// other, g schedules at once; then ring all-gather in every group. `between` is an all-reduce among
// m ranks.
inline Schedule rows_and_columns(int p, int g, const Schedule& between) {
  const int parts = between.blocks;
  const Schedule gather =
      in_groups(p, g, [parts](int n) { return refined(parts, ring_all_gather(n)); });
  std::vector<Schedule> columns;
  for (int i = 0; i < g; ++i) {
    columns.push_back(on({p, g * parts, [g, i](Rank r) { return r * g + i; },
                          [parts, i](Block b) { return IndexList(i * parts + b); }},
                         between));
  }
  return then(then(named("reduce-scatter", dual(gather)), named("all-reduce", together(columns))),
              named("all-gather", gather));
}

// The two-dimensional ring.
inline Schedule ring_2d_all_reduce(int p, int g) {
  return rows_and_columns(p, g, ring_all_reduce(p / g));
}

// Rings inside, a binary tree between: few rounds where a message takes long.
inline Schedule ring_tree_all_reduce(int p, int g, int s) {
  return rows_and_columns(p, g, tree_all_reduce(heap(p / g), s));
}

}  // namespace rankine
