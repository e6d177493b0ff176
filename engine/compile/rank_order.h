// Whether contributions come together in the order of the ranks, as operations need that are not
// commutative.
#pragma once

#include "engine/compile/versions.h"

namespace rankine {

// True: every sum that is ever made is of a run of ranks, lowest to highest, made of shorter runs
// that follow one another; a op b op c ... in the order of the ranks, whatever the brackets. A
// round adds what it brings to one place in the order of the lowest rank of each (schedule.h), so
// by induction over the versions it is enough that in each of them every run begins where the one
// before it ends. False means that some sum has a gap, which another one must later fill.
bool in_rank_order(const Versions& versions);

}  // namespace rankine
