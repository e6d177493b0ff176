// Hierarchical algorithms work on two levels: groups of neighbours (a node, a socket), and the
// network between them. Rank r is member r % g of group r / g.
//   p ranks    g ranks per group    m = p / g groups    s segments
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "algorithms/direct.h"
#include "algorithms/levels.h"
#include "algorithms/ring.h"
#include "algorithms/schedule/combine.h"
#include "algorithms/schedule/stating_order.h"
#include "algorithms/tree.h"

namespace rankine {

// make(n) in every group at once, with n the group's size: the last group has the remaining ranks.
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

// One leader per group sends all data that cross: fewest rounds, for small messages. Three rounds,
// each direct: members to leader, leaders among each other, leader to members.
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

// Rings inside, a binary tree between: few rounds between groups, where a message takes long.
inline Schedule ring_tree_all_reduce(int p, int g, int s) {
  return rows_and_columns(p, g, tree_all_reduce(k_ary_tree(p / g), s));
}

// Several leaders in every group, so that the memory and the network ports of a group carry parts
// of the vector at once. Bayatpour, Chakraborty, Subramoni, Lu & Panda, "Scalable reduction
// collectives with data partitioning-based multi-leader design" (DPML), SC 2017; for all-gathers
// Kandalla, Subramoni, Santhanaraman, Koop & Panda, "Designing multi-leader-based allgather
// algorithms for multi-core clusters", CAC 2009. The levels of the machine name the leaders: with
// sizes u and g, the first of every u neighbours leads in groups of g; with one size g every member
// leads.
//   p ranks    g ranks per group    u ranks per leader    k = g / u leaders    m = p / g groups
//   j leader of a group    q group

struct Leaders {
  Leaders(int p, const std::vector<int>& levels) : ranks(p) {
    const std::vector<int> sizes = nested_sizes(p, levels);
    if (sizes.size() > 1) group = sizes[sizes.size() - 2];
    if (sizes.size() > 2) below = sizes[sizes.size() - 3];
  }
  int count() const { return group / below; }
  int groups() const { return ranks / group; }
  // The leaders at position j of all groups.
  Group alike(int j, int blocks, std::function<IndexList(Block)> block) const {
    return {ranks, blocks, [g = group, i = j * below](Rank q) { return q * g + i; },
            std::move(block)};
  }
  int ranks, group = 1, below = 1;
};

// Leader j reduces part j of the vector in its group; then the leaders j of all groups reduce it
// among each other; then each broadcasts it. inside(g, root) is any broadcast among the ranks of a
// group, `between` any all-reduce among m ranks.
template <class Inside>
Schedule multi_leader_all_reduce(const Leaders& leaders, const Inside& inside,
                                 const Schedule& between) {
  const int g = leaders.group, k = leaders.count();
  const Schedule part = refined(inside(g, 0).blocks, between);
  const int n = part.blocks;
  std::vector<Schedule> of_group, across;
  for (int j = 0; j < k; ++j) {
    of_group.push_back(
        on_blocks(k * n, j * n, refined(between.blocks, inside(g, j * leaders.below))));
    const auto block_of = [n, j](Block b) { return IndexList(j * n + b); };
    across.push_back(on(leaders.alike(j, k * n, block_of), part));
  }
  const auto group = std::make_shared<const Schedule>(coloured(together(std::move(of_group))));
  const Schedule down = in_groups(leaders.ranks, g, [&group](int members) {
    const auto round = [group](int t, Send send) { group->round(t, send); };
    return Schedule{members, group->blocks, group->rounds, round, {}, group->planes};
  });
  return then(then(named("reduce", dual(down)), named("all-reduce", together(across))),
              named("broadcast", down));
}

// Every leader gathers the blocks of the u ranks from itself on; then the leaders j of all groups
// exchange theirs by `between`, any all-gather among m ranks; then each sends all its blocks to the
// members of its group.
//   s blocks of a rank in `between`
inline Schedule multi_leader_all_gather(const Leaders& leaders, const Schedule& between) {
  const int p = leaders.ranks, g = leaders.group, u = leaders.below;
  const int s = between.blocks / between.ranks;
  const Schedule up = {p, p, u > 1 ? 1 : 0, [p, u](int, Send send) {
                         for (int i = 1; i < u; ++i) {
                           for (Rank r = 0; r < p; r += u) send(r + i, r, block(r + i), copy);
                         }
                       }};
  const Schedule down = {p, p, g > 1 ? 1 : 0, [p, g, u](int, Send send) {
                           for (int i = u; i < u + g - 1; ++i) {  // the longest messages first
                             for (Rank r = 0; r < p; r += u) {
                               const Rank to = r / g * g + (r + (i - 1) % (g - 1) + 1) % g;
                               BlockSet what;
                               for (Block b = r % g; b < p; b += (b + 1) % u != 0 ? 1 : g - u + 1) {
                                 if (b != to) what.list.append(b);
                               }
                               send(r, to, what, copy);
                             }
                           }
                         }};
  std::vector<Schedule> across;
  for (int j = 0; j < leaders.count(); ++j) {
    const auto blocks_of = [g, u, s, j](Block b) {
      return IndexList(Run{(b / s * g + j * u) * s + b % s, u, s});
    };
    across.push_back(on(leaders.alike(j, p * s, blocks_of), between));
  }
  return then(then(named("gather", refined(s, up)), named("between groups", together(across))),
              named("in groups", refined(s, down)));
}

// Two levels in shared memory: groups of neighbours (the ranks of a node, or of an L3) and the data
// that cross between them. Every byte crosses into a group, or out of it, exactly once, and all
// members work: each is its group's leader for a part of the blocks. Rank r is member r % g of
// group r / g. Li, Hoefler & Snir, "NUMA-aware shared-memory collective communication for MPI",
// HPDC 2013.
//   p ranks    g ranks per group    m groups    j group    b block    i member

// The rank that brings block b, which starts at rank b, into group j: the member with b's position
// in its group, or, in a last group with fewer members, that position modulo their number.
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
