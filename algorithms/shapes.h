// Shapes of trees (rooted_tree.h) over n ranks.
#pragma once

#include "algorithms/rooted_tree.h"

namespace rankine {

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

}  // namespace rankine
