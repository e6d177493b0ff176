#include "engine/read/sum_trees.h"

#include <algorithm>

namespace rankine {

RotatedTree SumTrees::sum(std::vector<RotatedTree> parts) {
  std::sort(parts.begin(), parts.end());
  const auto [found, is_new] =
      numbers_.try_emplace(parts, static_cast<int>(parts_.size()) + kLeaf + 1);
  if (is_new) parts_.push_back(std::move(parts));
  return {found->second, 0};
}

Rank SumTrees::lowest(RotatedTree tree) const {
  if (tree.tree == kLeaf) return tree.by;
  Rank least = rotation_.ranks();
  for (const RotatedTree part : parts_of(tree.tree)) {
    least = std::min(least, lowest(rotated(part, tree.by)));
  }
  return least;
}

std::vector<std::pair<Rank, RotatedTree>> SumTrees::in_order(RotatedTree tree) const {
  std::vector<std::pair<Rank, RotatedTree>> out;
  for (const RotatedTree part : parts_of(tree.tree)) {
    const RotatedTree there = rotated(part, tree.by);
    out.emplace_back(lowest(there), there);
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool SumTrees::same(RotatedTree a, RotatedTree b) {
  if (a == b) return true;
  if (a.tree <= kLeaf || b.tree <= kLeaf) return false;
  if (parts_of(a.tree).size() != parts_of(b.tree).size()) return false;
  if (const auto found = compared_.find({a, b}); found != compared_.end()) return found->second;
  const auto of_a = in_order(a), of_b = in_order(b);
  bool alike = true;
  for (std::size_t i = 0; i < of_a.size() && alike; ++i) {
    alike = of_a[i].first == of_b[i].first && same(of_a[i].second, of_b[i].second);
  }
  compared_[{a, b}] = alike;
  return alike;
}

}  // namespace rankine
