// What the ranks of a line have in the course of its all-gather.
#pragma once

#include <map>
#include <vector>

#include "algorithms/schedule/schedule.h"

namespace rankine {

// By coordinate: the blocks of its line that a rank has, as coordinates. Where everyone does the
// same (schedule/everyone.h), of coordinate 0.
using Held = std::vector<IndexList>;

// What they have before round k, for every k asked for.
std::map<int, Held> held_before(const Schedule& line, const std::vector<int>& rounds_asked);

}  // namespace rankine
