// What a network and an algorithm's parameters leave to each other.
#pragma once

#include <vector>

#include "algorithms/catalogue.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"

namespace rankine {

// The fabric for params.ranks ranks, as wired_for() has it. The sizes of a torus are asked for
// once: a network without any takes params.dims, an algorithm that takes dims the network's where
// `params` has none, and from `params` of one that does not take them goes what the network took.
// Of groups likewise: an algorithm that takes them gets the network's where `params` has none.
// Errors: those of wired_for().
Result<Fabric> wire(const Fabric& fabric, const Algorithm& algorithm, Params& params);

// Sizes of groups of neighbours, innermost first, to an algorithm that takes levels, or the last of
// them as its group, where `params` has none. Not every group suits every number of ranks: then
// its default is left.
void take_levels(const Algorithm& algorithm, const std::vector<int>& levels, Params& params);

}  // namespace rankine
