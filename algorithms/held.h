// What the ranks of a line have in the course of its all-gather.
#pragma once

#include <map>
#include <vector>

#include "algorithms/schedule/schedule.h"
#include "algorithms/torus.h"

namespace rankine {

// By coordinate: the blocks of its line that a rank has, as coordinates. Where everyone does the
// same (schedule/everyone.h), of coordinate 0.
using Held = std::vector<IndexList>;

// What they have before round k, for every k asked for.
std::map<int, Held> held_before(const Schedule& line, const std::vector<int>& rounds_asked);

// On a torus whose ranks have all come equally far, what they have is a product. The blocks whose
// coordinate in the dimension at work, whose entry in `others` is empty, is in `what`, and in every
// other dimension among those that rank r has.
IndexList held_product(const Torus& torus, const std::vector<const Held*>& others,
                       const IndexList& what, Rank r);

}  // namespace rankine
