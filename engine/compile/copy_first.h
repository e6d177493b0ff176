// Apart as in place: a pass over programs for the direct transport.
//
// In place, whoever adds a block up stores the sum where it has just read: at each of the others
// the lines cross once to be added, are taken over, and cross once more to be read. Apart, either
// the sums are stored at outputs that the others' caches hold, and every line crosses a third time,
// or each rank fetches them, after one more wait. So each rank first copies to its output what
// others want of its input, which costs one pass over memory of its own, and the others go on as in
// place:
//
//   rank 0 of 2:  copy lower half | upper half: own input + other's output, stored at both outputs
//   rank 1 of 2:  copy upper half | lower half: own input + other's output, stored at both outputs
//
// (Measured: at 4 and 8 ranks on two cores 0.6 of the time of storing apart, 0.8 of fetching.)
#pragma once

#include "engine/compile/program.h"

namespace rankine {

// Of an all-reduce's program made for buffers in place: the same for buffers apart. Results are the
// same to the last bit.
Program copy_first(Program program, PlanMeter* meter = nullptr);

}  // namespace rankine
