// Tree is a tree over ranks, with the round in which each rank receives from its parent; this
// header also has the shapes of trees and pairs of trees. tree.h makes schedules of them.
//   r rank    rank 0 is the root, unless stated otherwise
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "algorithms/schedule/schedule.h"

namespace rankine {

inline constexpr Rank kNoParent = -1;

struct Tree {
  std::vector<Rank> parent;  // by rank; kNoParent for the root
  std::vector<int> when;     // the round in which a rank receives from its parent; -1 for the root

  int ranks() const { return static_cast<int>(parent.size()); }
  Rank parent_of(Rank r) const { return at(parent, r); }
  int when_of(Rank r) const { return at(when, r); }
  int rounds() const;                           // 1 + the last `when`
  int depth_of(Rank r) const;                   // edges from the root
  int depth() const;                            // edges from the root to the deepest rank
  std::vector<Rank> children_of(Rank r) const;  // ascending
  bool operator==(const Tree&) const = default;
};

// The tree with these parents, level by level: a rank receives one round after its parent.
Tree by_levels(std::vector<Rank> parents);

// Rank 0 on top of a tree over the others: r of `below` becomes r + 1.
Tree topped(const Tree& below);

// The tree in which name(r) takes r's part.
Tree renamed(const Tree& tree, const std::function<Rank(Rank)>& name);

// Shapes of trees over n ranks.

// k-nomial trees of ceil(log_k n) rounds. In each round every rank with the data sends to k - 1
// ranks without: near first at distances 1 ... k - 1, then k, 2k ... (k - 1) k, then multiples of
// k^2 ...; far first in the reverse order of these. Far first, the ranks below r are its right-hand
// neighbours: subtrees are intervals. Binomial if k is two.
Tree knomial_near(int n, int k);
Tree knomial_far(int n, int k);
inline Tree binomial_near(int n) { return knomial_near(n, 2); }
inline Tree binomial_far(int n) { return knomial_far(n, 2); }

// Bine (binomial negabinary) tree of ceil(log2 n) rounds: subtrees are intervals of ranks, modulo
// n. A rank with data for an interval sends it to its mirror image across the middle. For a power
// of two the distances are those of negabinary numbers, ... 11, -5, 3, -1, 1, two thirds of a
// binomial tree's: a rank is placed a third of the way along its interval. At an odd size the
// sender keeps the larger part. De Sensi et al., "Bine trees: Enhancing collective operations by
// optimizing communication locality", SC 2025.
Tree bine(int n);

// The root sends to 1, 2, ... n - 1, one after the other.
Tree star(int n);

// The complete k-ary tree, level by level from left to right: r above k r + 1 ... k r + k. If k is
// two: depth floor(log2 n), and interior are the ranks below floor(n / 2).
Tree k_ary_tree(int n, int k = 2);

// The binary search tree over 0 ... n - 1 with the even ranks as leaves: its root is 2^floor(log2
// n) - 1, and its depth floor(log2 n).
Tree in_order(int n);

// Two trees that each carry one half of the vector, so that a rank that is interior in one of them
// is a leaf in the other.
//   n ranks

using TreePair = std::pair<Tree, Tree>;

// As NCCL builds them (ncclGetDtree): rank 0 on top of an in-order tree, and its mirror image for
// even n, or the tree shifted by one rank for odd n. Interiors are disjoint for even n; for odd n
// rank 0 is interior in both.
TreePair nccl_trees(int n);

// Two k_ary_tree(), the second from the other end and with the leaves in the order of the ranks. No
// rank is interior in both, for any n.
TreePair complementary_trees(int n);

// Two k_ary_tree() over the ranks 1 ... n - 1 and rank 0 on top of both, the second from the other
// end. No rank of 1 ... n - 1 is interior in both, for any n.
TreePair topped_trees(int n);

// topped_trees() in rounds of two colours, so that no rank sends or receives twice in a round, for
// any number of segments that follow one another two rounds apart. Sanders, Speck & Traff,
// "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing
// 35(12), 2009.
TreePair coloured_trees(int n);

}  // namespace rankine
