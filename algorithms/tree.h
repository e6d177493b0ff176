// In a tree algorithm the root's vector goes from parent to child; reversed in time, the sum goes
// from child to parent. Shapes and their rounds are in shapes.h. Double trees and in-network
// switches follow. Binomial trees: Johnsson & Ho, "Optimum broadcasting and personalized
// communication in hypercubes", IEEE Trans. Computers 38(9), 1989; k-ary trees: MPICH 4,
// src/mpi/coll/algorithms/treealgo/treeutil.c (MPII_Treeutil_tree_kary_init).
//   s segments, one `interval` behind the other
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "algorithms/schedule/combine.h"
#include "algorithms/schedule/stating_order.h"
#include "algorithms/shapes.h"

namespace rankine {

// By round: the ranks that receive in it.
inline std::vector<std::vector<Rank>> by_rounds(const Tree& tree) {
  std::vector<std::vector<Rank>> hears(static_cast<std::size_t>(tree.rounds()));
  for (Rank r : ranks(tree.ranks())) {
    if (tree.when_of(r) >= 0) at(hears, tree.when_of(r)).push_back(r);
  }
  return hears;
}

// Every parent sends what(r) to child r.
template <class What>
Schedule down(const Tree& tree, int blocks, const What& what) {
  auto shape = std::make_shared<const Tree>(tree);
  return {tree.ranks(), blocks, tree.rounds(),
          [shape, hears = by_rounds(tree), what](int k, Send send) {
            for (Rank r : at(hears, k)) {
              send(shape->parent_of(r), r, what(r), copy);
            }
          }};
}

// One whole vector to all ranks.
inline Schedule tree_hops(const Tree& tree) {
  return down(tree, 1, [](Rank) { return block(0); });
}

inline Schedule tree_broadcast(const Tree& tree, Rank root, int s) {
  return rooted_at(root, pipelined(tree_hops(tree), s));
}

inline Schedule tree_reduce(const Tree& tree, Rank root, int s) {
  return rooted_at(root, pipelined(dual(tree_hops(tree)), s));
}

// Up and down: a segment turns round at the root and meets the next ones on their way up.
inline Schedule up_and_down(const Schedule& hops) { return then(dual(hops), hops); }

inline Schedule tree_all_reduce(const Tree& tree, int s) {
  return coloured(pipelined(up_and_down(tree_hops(tree)), s, 1, Segments::youngest_first));
}

// The papers' baseline: the first segment goes down only after all segments are up.
inline Schedule tree_reduce_then_broadcast(const Tree& tree, int s) {
  return then(named("reduce", tree_reduce(tree, 0, s)),
              named("broadcast", tree_broadcast(tree, 0, s)));
}

// Block b goes from the root to rank b: every child gets the blocks of all ranks below it.
inline Schedule tree_scatter(const Tree& tree, Rank root) {
  const int p = tree.ranks();
  std::vector<IndexList> below(static_cast<std::size_t>(p));
  for (Rank b : ranks(p)) {
    for (Rank r = b; r != kNoParent; r = tree.parent_of(r)) {
      at(below, r).append(b);
    }
  }
  return turned(root, down(tree, p, [below](Rank r) { return BlockSet{at(below, r), 0}; }));
}

inline Schedule tree_gather(const Tree& tree, Rank root) { return dual(tree_scatter(tree, root)); }

// Broadcast of long vectors: scatter by a binomial tree, then all-gather round the ring.
// van de Geijn; Barnett, Shuler, Gupta, Payne, van de Geijn & Watts, "Building a high-performance
// collective communication library", Supercomputing 1994.
//   p ranks and blocks    r rank, the root is 0    k round

// After the scatter r has the blocks r ... r + 2^i - 1, with 2^i the lowest bit of r: it keeps them
// all, so the ring does not bring them again.
inline Schedule ring_of_missing_blocks(int p) {
  return {p, p, p - 1, [p](int k, Send send) {
            for (Rank r = 0; r < p - 1; ++r) {
              const Block b = (r - k + p) % p;
              const int has = (r + 1) & -(r + 1);
              if (b < r + 1 || b >= r + 1 + has) send(r, r + 1, block(b), copy);
            }
          }};
}

inline Schedule scatter_all_gather_broadcast(int p, Rank root) {
  return turned(root, then(named("scatter", tree_scatter(binomial_far(p), 0)),
                           named("all-gather", ring_of_missing_blocks(p))));
}

inline Schedule reduce_scatter_gather_reduce(int p, Rank root) {
  return dual(scatter_all_gather_broadcast(p, root));
}

// Two trees at once, each with one half of the vector, so that (nearly) every rank is interior in
// one of them and a leaf in the other, and no rank's links are idle. Sanders, Speck & Traff,
// "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing
// 35(12), 2009; Jeaugey, "Massively scale your deep learning training with NCCL 2.4", 2019.
//   p ranks    s segments of each half

inline Schedule both_hops(const TreePair& trees) {
  return halves(tree_hops(trees.first), tree_hops(trees.second));
}

// All children at once, one segment after the other in every round.
inline Schedule double_tree_broadcast(int p, Rank root, int s) {
  return rooted_at(root, coloured(pipelined(both_hops(topped_trees(p)), s)));
}

inline Schedule double_tree_reduce(int p, Rank root, int s) {
  return rooted_at(root, coloured(pipelined(dual(both_hops(topped_trees(p))), s)));
}

inline Schedule double_tree_all_reduce(int p, int s) {
  return coloured(pipelined(up_and_down(both_hops(complementary_trees(p))), s));
}

// As NCCL's runTreeUpDown: all segments up, then all down.
inline Schedule nccl_double_tree_all_reduce(int p, int s) {
  const Schedule hops = both_hops(nccl_trees(p));
  return coloured(
      then(named("reduce", pipelined(dual(hops), s)), named("broadcast", pipelined(hops, s))));
}

// As NCCL's runTreeSplit: segments on their way down meet those that still go up.
inline Schedule nccl_split_tree_all_reduce(int p, int s) {
  return coloured(pipelined(up_and_down(both_hops(nccl_trees(p))), s));
}

// One message in and one out per rank and round: the first tree's edges of even colour and the
// second tree's of odd colour never meet, segments follow two rounds apart.
inline Schedule two_tree_broadcast(int p, Rank root, int s) {
  return rooted_at(root, pipelined(both_hops(coloured_trees(p)), s, 2));
}

inline Schedule two_tree_reduce(int p, Rank root, int s) {
  return rooted_at(root, pipelined(dual(both_hops(coloured_trees(p))), s, 2));
}

// Up and down do not overlap: each phase alone keeps every link busy.
inline Schedule two_tree_all_reduce(int p, int s) {
  return then(named("reduce", two_tree_reduce(p, 0, s)),
              named("broadcast", two_tree_broadcast(p, 0, s)));
}

// In the network: a switch that copies one message to many (multicast), adds up messages from many
// (ALU), or both at once. NVLink SHARP (NVLS), InfiniBand SHARP; Graham et al., "Scalable
// hierarchical aggregation protocol (SHArP)", COMHPC 2016.
//   p ranks    r rank

inline Schedule switch_broadcast(int p, Rank root) {
  return {p, 1, p > 1 ? 1 : 0,
          [p, root](int, Send send) { send(root, ranks_from(root + 1, p - 1), block(0), copy); }};
}

inline Schedule switch_reduce(int p, Rank root) { return dual(switch_broadcast(p, root)); }

inline Schedule switch_all_gather(int p) {
  return {p, p, p > 1 ? 1 : 0, [p](int, Send send) {
            for (Rank r : ranks(p)) send(r, ranks_from(r + 1, p - 1), block(r), copy);
          }};
}

inline Schedule switch_reduce_scatter(int p) { return dual(switch_all_gather(p)); }

// All vectors meet in the switch, and the sum comes back to every rank beside its own vector (plane
// 1), from which it is copied: the second round is local.
inline Schedule switch_all_reduce(int p) {
  Schedule out{p, 1, p > 1 ? 2 : 0, [p](int k, Send send) {
                 if (k == 0) {
                   send(ranks_from(0, p), ranks_from(0, p), block(0), block(0, 1), reduce);
                 } else {
                   for (Rank r : ranks(p)) send(r, r, block(0, 1), block(0), copy);
                 }
               }};
  out.planes = 2;
  return out;
}

// For a switch that copies and does not add, as PCIe's (Lu, "Collective Algorithms", 2026, 3.3):
// rank 0 gets the sum by messages, up a binomial tree, and all ranks get it by one multicast.
inline Schedule tree_reduce_then_multicast(int p) {
  return then(named("reduce", tree_reduce(knomial_far(p, 2), 0, 1)),
              named("broadcast", switch_broadcast(p, 0)));
}

}  // namespace rankine
