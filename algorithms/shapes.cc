#include "algorithms/shapes.h"

#include <algorithm>

namespace rankine {

int Tree::rounds() const { return 1 + *std::max_element(when.begin(), when.end()); }

int Tree::depth_of(Rank r) const {
  int edges = 0;
  for (; parent_of(r) != kNoParent; r = parent_of(r)) ++edges;
  return edges;
}

int Tree::depth() const {
  int deepest = 0;
  for (Rank r : rankine::ranks(ranks())) deepest = std::max(deepest, depth_of(r));
  return deepest;
}

std::vector<Rank> Tree::children_of(Rank r) const {
  std::vector<Rank> out;
  for (Rank child : rankine::ranks(ranks())) {
    if (parent_of(child) == r) out.push_back(child);
  }
  return out;
}

Tree by_levels(std::vector<Rank> parents) {
  Tree out{std::move(parents), {}};
  for (Rank r : ranks(out.ranks())) out.when.push_back(out.depth_of(r) - 1);
  return out;
}

Tree topped(const Tree& below) {
  Tree out{{kNoParent}, {-1}};
  for (Rank r : ranks(below.ranks())) {
    out.parent.push_back(below.parent_of(r) + 1);  // kNoParent becomes 0
    out.when.push_back(below.when_of(r) + 1);
  }
  return out;
}

Tree renamed(const Tree& tree, const std::function<Rank(Rank)>& name) {
  Tree out = tree;
  for (Rank r : ranks(tree.ranks())) {
    const Rank above = tree.parent_of(r);
    at(out.parent, name(r)) = above == kNoParent ? kNoParent : name(above);
    at(out.when, name(r)) = tree.when_of(r);
  }
  return out;
}

namespace {

template <class Parent>
std::vector<Rank> parents(int n, const Parent& parent) {
  std::vector<Rank> out;
  for (Rank r : ranks(n)) out.push_back(parent(r));
  return out;
}

template <class Parent, class When>
Tree tree(int n, const Parent& parent, const When& when) {
  Tree out{{kNoParent}, {-1}};
  for (Rank r = 1; r < n; ++r) {
    out.parent.push_back(parent(r));
    out.when.push_back(when(r));
  }
  return out;
}

int lowest_bit(int r) { return r & -r; }

// The place of the lowest non-zero digit of r, to base k.
int lowest_place(int k, int r) { return r % k != 0 ? 0 : 1 + lowest_place(k, r / k); }

}  // namespace

Tree knomial_near(int n, int k) {
  return tree(
      n, [k](Rank r) { return r % power_of(k, floor_log(k, r)); },
      [k](Rank r) { return floor_log(k, r); });
}

Tree knomial_far(int n, int k) {
  const int last = ceil_log(k, n) - 1;
  return tree(
      n, [k](Rank r) { return r - r % power_of(k, lowest_place(k, r) + 1); },
      [k, last](Rank r) { return last - lowest_place(k, r); });
}

namespace {

// Rank `from` has the data for the ranks first ... first + count - 1, modulo n.
void reflect(Tree& tree, int first, int count, Rank from, int round) {
  if (count == 1) return;
  const bool low = from - first < (count + 1) / 2;  // `from` is in the half that is stated first
  const int middle = first + (count + (low ? 1 : 0)) / 2, last = first + count - 1;
  const Rank image = 2 * middle - 1 - from, to = std::clamp(image, first, last), n = tree.ranks();
  at(tree.parent, wrapped(to, n)) = wrapped(from, n);
  at(tree.when, wrapped(to, n)) = round;
  reflect(tree, first, middle - first, low ? from : to, round + 1);
  reflect(tree, middle, first + count - middle, low ? to : from, round + 1);
}

}  // namespace

Tree bine(int n) {
  Tree out{std::vector<Rank>(static_cast<std::size_t>(n), kNoParent),
           std::vector<int>(static_cast<std::size_t>(n), -1)};
  reflect(out, ceil_log2(n) % 2 == 0 ? n / 3 + 1 - n : -(n / 3), n, 0, 0);
  return out;
}

Tree star(int n) {
  return tree(
      n, [](Rank) { return 0; }, [](Rank r) { return r - 1; });
}

Tree k_ary_tree(int n, int k) {
  return by_levels(parents(n, [k](Rank r) { return r == 0 ? kNoParent : (r - 1) / k; }));
}

Tree in_order(int n) {
  return by_levels(parents(n, [n](Rank r) {
    const int q = r + 1, bit = lowest_bit(q);  // in 1 ... n, the children of q are q +- bit / 2
    const int above = (q ^ bit) | (2 * bit);
    return (above <= n ? above : q ^ bit) - 1;  // 0, over the edge, becomes kNoParent
  }));
}

namespace {

// The tree with the earliest rounds in which each r receives only in rounds of its colour (0: even,
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
  return {k_ary_tree(n), renamed(k_ary_tree(n), [n, interior](Rank r) {
            return r < interior ? n - 1 - r : r - interior;
          })};
}

TreePair topped_trees(int n) {
  const Tree first = topped(k_ary_tree(n - 1));
  return {first, renamed(first, [n](Rank r) { return (n - r) % n; })};
}

// Two children differ in colour, and so do a rank's edges to its two parents: the first tree
// alternates from rank to rank, and the second has the other colour for a rank in both. Only rank 1
// (its last, role n - 1, in the second tree) must deviate at odd n, for the sake of rank 0, which
// has an edge to each tree.
TreePair coloured_trees(int n) {
  const Tree plain = topped(k_ary_tree(n - 1));
  const int first_colour = n % 2;
  const auto colour = [first_colour](Rank r) { return r == 1 ? 0 : (r - 1 + first_colour) % 2; };
  const auto other = [n, colour](Rank r) { return 1 - colour(n - r); };
  return {in_colours(plain, colour),
          renamed(in_colours(plain, other), [n](Rank r) { return (n - r) % n; })};
}

}  // namespace rankine
