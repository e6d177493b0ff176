// The levels of a machine: groups of neighbouring ranks within groups, such as those of an L3, of a
// memory node, of a package; and the tree that follows them.
// Trees by the levels of the caches: Jain et al., "Framework for scalable intra-node collective
// operations using shared memory", SC 2018.
//   n ranks    r rank    levels: sizes of groups, innermost first; rank r is in group r / size, and
//   the last group may have fewer
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "algorithms/rooted_tree.h"

namespace rankine {

// The tree of a machine's levels. `levels` are sizes of groups, innermost first, such as the ranks
// of an L3, of a node, of a package; rank r is in group r / size, and the last group may have
// fewer. The first rank of a group leads it, or the root where it is a member. Leaders hear from
// the leader of the group around theirs, outermost first, all of one level in one round: everything
// enters every group exactly once. Without levels: the root tells everybody at once.
Tree level_tree(int n, Rank root, const std::vector<int>& levels);
// Why these are no levels of n ranks: sizes are from 1 to n, each a multiple of the one before.
std::optional<std::string> levels_refusal(const std::vector<int>& levels, int n);

// The divisor of n nearest to its square root: the default group of hierarchical algorithms.
int middle_divisor(int n);

}  // namespace rankine
