#include "algorithms/tree_pairs.h"

#include "algorithms/shapes.h"

namespace rankine {
namespace {

// The same tree, in which r hears as early as possible, and only in rounds of its colour (0: even,
// 1: odd). Parents have smaller numbers than their children.
template <class Colour>
Tree in_colours(Tree tree, const Colour& colour) {
  for (Rank r = 1; r < tree.ranks(); ++r) {
    const int next = tree.when_of(tree.parent_of(r)) + 1;
    at(tree.when, r) = next + (next % 2 == colour(r) ? 0 : 1);
  }
  return tree;
}

}  // namespace

TreePair nccl_trees(int n) {
  const Tree first = topped(in_order(n - 1));
  return {first, renamed(first, [n](Rank r) { return n % 2 == 0 ? n - 1 - r : (r + 1) % n; })};
}

TreePair complementary_trees(int n) {
  const int interior = n / 2;
  return {heap(n), renamed(heap(n), [n, interior](Rank r) {
            return r < interior ? n - 1 - r : r - interior;
          })};
}

TreePair topped_trees(int n) {
  const Tree first = topped(heap(n - 1));
  return {first, renamed(first, [n](Rank r) { return (n - r) % n; })};
}

// Two children differ in colour, and so do a rank's edges to its two parents: the first tree
// alternates from rank to rank, and the second has the other colour wherever a rank appears in
// both. Only rank 1 (its last, role n - 1, in the second tree) must give way at odd n, for the sake
// of rank 0, which has an edge to each tree.
TreePair coloured_trees(int n) {
  const Tree plain = topped(heap(n - 1));
  const int first_colour = n % 2;
  const auto colour = [first_colour](Rank r) { return r == 1 ? 0 : (r - 1 + first_colour) % 2; };
  const auto other = [n, colour](Rank r) { return 1 - colour(n - r); };
  return {in_colours(plain, colour),
          renamed(in_colours(plain, other), [n](Rank r) { return (n - r) % n; })};
}

}  // namespace rankine
