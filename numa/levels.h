// The machine's levels as neighbouring ranks see them.
#pragma once

#include <span>
#include <vector>

#include "numa/placement.h"
#include "numa/topology.h"

namespace rankine {

// How many neighbouring ranks share an L3, a memory node, a package: sizes of groups, rising, each
// a multiple of the one before. A level counts where ranks 0 ... g - 1 are one group, the next g
// another, and so on (the last may have fewer), as compact placement makes them; one that is not
// like this, that has one group only, or one rank in each, is left out. Empty where somebody is not
// placed. Pure.
std::vector<int> level_groups(const Topology& topology, const Placement& placement);
// The same of any levels, innermost first: of each, the group that every rank is in.
std::vector<int> level_groups(std::span<const std::vector<int>> groups_of_ranks);

}  // namespace rankine
