// What this thread calls between rkGroupStart() and the group's end: collected, to be made together
// there (call_group.h).
#pragma once

#include "engine/api/c/call_group.h"
#include "engine/api/c/collected_ranks.h"
#include "engine/api/c/rankine.h"

namespace rankine {

// Whether this thread is between the two.
bool in_group() noexcept;
// For the group's end. Errors: no memory, as an exception.
void collect(CollectedCall call);
void collect(CollectedRank rank);
// A call of the group was refused: its end starts none and says why.
void refuse_group(rkResult_t result) noexcept;

}  // namespace rankine
