#include "algorithms/rooted_tree.h"

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

}  // namespace rankine
