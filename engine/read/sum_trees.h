// In which way the sums of one rank are added up, where it stands for all (everyone.h): trees of
// additions as that rank sees them, so that two ranks' trees can be compared that are nowhere
// written out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithms/schedule/everyone.h"

namespace rankine {

// A tree, turned by a rank. Numbers below 1: none.
struct RotatedTree {
  int tree = 0;
  Rank by = 0;
  auto operator<=>(const RotatedTree&) const = default;
};

// A sum adds in the order of the lowest rank of each of its parts (schedule.h), so which parts it
// has says how it is added up; the ranks that they come from say in which order. Not thread-safe.
class SumTrees {
 public:
  explicit SumTrees(const Rotation& rotation) : rotation_(rotation) {}

  // A rank's own contribution.
  RotatedTree of(Rank r) const { return {kLeaf, r}; }
  RotatedTree rotated(RotatedTree tree, Rank by) const {
    return {tree.tree, rotation_.rotated(tree.by, by)};
  }
  // The sum of two or more, in one addition.
  RotatedTree sum(std::vector<RotatedTree> parts);
  // Whether both are added up alike. Of trees that are not the same one turned alike this takes as
  // long as they are large, once.
  bool same(RotatedTree a, RotatedTree b);

 private:
  static constexpr int kLeaf = 1;
  const std::vector<RotatedTree>& parts_of(int tree) const {
    return parts_[static_cast<std::size_t>(tree - kLeaf - 1)];
  }
  Rank lowest(RotatedTree tree) const;
  // The parts of one, by the lowest rank of each.
  std::vector<std::pair<Rank, RotatedTree>> in_order(RotatedTree tree) const;

  const Rotation& rotation_;
  std::vector<std::vector<RotatedTree>> parts_;      // ascending
  std::map<std::vector<RotatedTree>, int> numbers_;  // of trees
  std::map<std::pair<RotatedTree, RotatedTree>, bool> compared_;
};

}  // namespace rankine
