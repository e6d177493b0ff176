// Two trees at once, each with one half of the vector, so that (nearly) everyone is interior in one
// of them and a leaf in the other, and nobody's links lie idle.
// Sanders, Speck & Traff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
// Parallel Computing 35(12), 2009; Jeaugey, "Massively scale your deep learning training with NCCL
// 2.4", 2019.
//   p ranks    s segments of each half
#pragma once

#include "algorithms/schedule/edge_colours.h"
#include "algorithms/tree.h"
#include "algorithms/tree_pairs.h"

namespace rankine {

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

// As its runTreeSplit: segments on their way down meet those that still go up.
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

// Up and down do not overlap: each of them keeps every link busy by itself.
inline Schedule two_tree_all_reduce(int p, int s) {
  return then(named("reduce", two_tree_reduce(p, 0, s)),
              named("broadcast", two_tree_broadcast(p, 0, s)));
}

}  // namespace rankine
