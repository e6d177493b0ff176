// Which algorithm a call gets when the caller names none.
#pragma once

#include <cstddef>

#include "algorithms/catalogue.h"
#include "engine/api/tuning.h"
#include "engine/compile/program.h"

namespace rankine {

// The default for shared memory, without measuring anything. `bytes` is M (the vector; one rank's
// send buffer for all_to_all).
const Algorithm& default_algorithm(Collective collective, int ranks, std::size_t bytes,
                                   Buffers buffers = Buffers::apart);

// What the table says, where there is one and it covers the question; else the default.
const Algorithm& choose_algorithm(Collective collective, int ranks, std::size_t bytes,
                                  const TuningTable* table, Buffers buffers = Buffers::apart);

// Segments of a pipelined algorithm when the caller gives none.
int choose_segments(const Algorithm& algorithm, int ranks, std::size_t bytes);

// Of data that half a board holds, among so many ranks. Above it direct calls are as fast: between
// two ranks they read what does not change where it is; many ranks read much of each other.
std::size_t board_bytes(int ranks);

}  // namespace rankine
