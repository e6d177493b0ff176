// Down a tree and up again: the root's vector goes from parent to child; reversed in time, the sum
// goes from child to parent. Shapes and their rounds are in shapes.h.
// Binomial trees: Johnsson & Ho, "Optimum broadcasting and personalized communication in
// hypercubes", IEEE Trans. Computers 38(9), 1989.
//   s segments, one `interval` behind the other
#pragma once

#include <memory>

#include "algorithms/schedule/combine.h"
#include "algorithms/schedule/edge_colours.h"
#include "algorithms/shapes.h"

namespace rankine {

// Who hears in which round.
inline std::vector<std::vector<Rank>> by_rounds(const Tree& tree) {
  std::vector<std::vector<Rank>> hears(static_cast<std::size_t>(tree.rounds()));
  for (Rank r : ranks(tree.ranks())) {
    if (tree.when_of(r) >= 0) at(hears, tree.when_of(r)).push_back(r);
  }
  return hears;
}

// What every parent hands to child r is what(r).
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

// One vector, all of it, to everyone.
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

// The papers' baseline: only when all segments are up, the first goes down.
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

}  // namespace rankine
