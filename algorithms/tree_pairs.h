// Two trees of which each carries one half of the vector, so that who is interior in one of them is
// a leaf in the other.
//   n ranks
#pragma once

#include <utility>

#include "algorithms/rooted_tree.h"

namespace rankine {

using TreePair = std::pair<Tree, Tree>;

// As NCCL builds them (ncclGetDtree): rank 0 on top of an in-order tree, and its mirror image for
// even n, its neighbour for odd n. Interiors are disjoint for even n; for odd n rank 0 is interior
// in both.
TreePair nccl_trees(int n);

// Two heaps, the second from the other end and with the leaves in the order of the ranks. Nobody is
// interior in both, for any n.
TreePair complementary_trees(int n);

// Two heaps over the ranks 1 ... n - 1 and rank 0 on top of both, the second from the other end.
// Among 1 ... n - 1 nobody is interior in both, for any n.
TreePair topped_trees(int n);

// topped_trees() in rounds of two colours, so that nobody sends or receives twice in a round,
// however many segments follow one another two rounds apart. Sanders, Speck & Traff, "Two-tree
// algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing 35(12), 2009.
TreePair coloured_trees(int n);

}  // namespace rankine
