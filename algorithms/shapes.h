// A tree over ranks, with the round in which a rank hears from its parent. Nothing here knows what
// travels; tree.h sends it.
//   r rank    rank 0 is the root, where nothing else is said
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "algorithms/schedule/schedule.h"

namespace rankine {

inline constexpr Rank kNoParent = -1;

struct Tree {
  std::vector<Rank> parent;  // of each rank; of the root kNoParent
  std::vector<int> when;     // the round in which a rank hears from its parent; of the root -1

  int ranks() const { return static_cast<int>(parent.size()); }
  Rank parent_of(Rank r) const { return at(parent, r); }
  int when_of(Rank r) const { return at(when, r); }
  int rounds() const;                           // 1 + the last `when`
  int depth_of(Rank r) const;                   // edges from the root
  int depth() const;                            // of the deepest rank
  std::vector<Rank> children_of(Rank r) const;  // ascending
  bool operator==(const Tree&) const = default;
};

// The tree with these parents, level by level: a rank hears one round after its parent.
Tree by_levels(std::vector<Rank> parents);

// Rank 0 on top of a tree over the others: r of `below` becomes r + 1.
Tree topped(const Tree& below);

// The tree that name(r) plays r's part in.
Tree renamed(const Tree& tree, const std::function<Rank(Rank)>& name);

// Shapes of trees (rooted_tree.h) over n ranks.

// k-nomial trees of ceil(log_k n) rounds. In each round everyone who has it tells k - 1 who have
// not: near first at distances 1 ... k - 1, then k, 2k ... (k - 1) k, then multiples of k^2 ...;
// far first in the reverse order of these. Far first, everyone below r is one of its right-hand
// neighbours: subtrees are intervals. Binomial where k is two.
Tree knomial_near(int n, int k);
Tree knomial_far(int n, int k);
inline Tree binomial_near(int n) { return knomial_near(n, 2); }
inline Tree binomial_far(int n) { return knomial_far(n, 2); }

// The root tells 1, 2, ... n - 1, one after the other.
Tree star(int n);

// The complete binary tree, level by level from left to right: r above 2r + 1 and 2r + 2.
// Depth floor(log2 n); interior are the ranks below floor(n / 2).
Tree heap(int n);

// The binary search tree over 0 ... n - 1 whose leaves are the even ranks: its root is
// 2^floor(log2 n) - 1, and so is its depth floor(log2 n).
Tree in_order(int n);

// Two trees of which each carries one half of the vector, so that who is interior in one of them is
// a leaf in the other.
//   n ranks

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
