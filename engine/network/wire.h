// What a network and an algorithm's parameters leave to each other.
#pragma once

#include "algorithms/catalogue.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"

namespace rankine {

// The fabric for params.ranks ranks, as wired_for() has it. The sizes of a torus are asked for
// once: a network without any takes params.dims, an algorithm that takes dims the network's where
// `params` has none, and from `params` of one that does not take them goes what the network took.
// Errors: those of wired_for().
Result<Fabric> wire(const Fabric& fabric, const Algorithm& algorithm, Params& params);

}  // namespace rankine
