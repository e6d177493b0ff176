// Read your own before others take it: a pass over programs for the direct transport.
//
// A cache line that one core has written moves to the core that reads it, and its writer has to
// fetch it back: where a rank adds its own vector to others' while they read its own, every line
// crosses twice (measured: twice to three times the time). So each rank first copies its own to the
// destination, before it even waits for the others, and then adds theirs. One part of the vector
// needs no copy: each rank begins with another part, which nobody else has come to yet.
//
//   rank 0 of 2:  copy upper half | lower half = own + other's | upper half += other's
//   rank 1 of 2:  copy lower half | upper half = own + other's | lower half += other's
#pragma once

#include <cstddef>

#include "engine/compile/program.h"

namespace rankine {

// Of an all-reduce's program, in ranges of at least `from` bytes: what is shorter is there at once,
// and further operations cost more than they save. For the others `buffers` does not say what lies
// in one memory. The order of additions stays, so results are the same to the last bit.
Program own_first(Program program, Buffers buffers, std::size_t from = Costs{}.own_first,
                  PlanMeter* meter = nullptr);

}  // namespace rankine
