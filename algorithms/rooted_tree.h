// A tree over ranks, with the round in which a rank hears from its parent. Nothing here knows what
// travels; tree.h sends it.
//   r rank    rank 0 is the root, where nothing else is said
#pragma once

#include <functional>
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

}  // namespace rankine
