// Products of cycles, taken apart into cycles that share no edge: all appended to `out`.
#pragma once

#include <vector>

#include "algorithms/layers.h"

namespace rankine {

// Two cycles times each other: two cycles.
void append_product(Cycle layers, Cycle graph, std::vector<Cycle>& out);

// A cycle times a graph of two cycles that share no edge: three cycles. Of an odd number of
// vertices of the graph there is an odd number of layers.
void append_triple(const Cycle& layers, Cycle first, const Cycle& second, std::vector<Cycle>& out);

}  // namespace rankine
