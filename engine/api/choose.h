// Which algorithm a call gets when the caller names none.
#pragma once

#include <cstddef>

#include "algorithms/catalogue.h"
#include "engine/exec/program.h"

namespace rankine {

// The default for this machine's kind, without measuring at run time. `bytes` is M (the vector; one
// rank's send buffer for all_to_all). Never a null pointer.
const Algorithm& choose_algorithm(Collective collective, int ranks, std::size_t bytes,
                                  Buffers buffers);

// Segments of a pipelined algorithm when the caller gives none.
int choose_segments(const Algorithm& algorithm, int ranks, std::size_t bytes);

}  // namespace rankine
