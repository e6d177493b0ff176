// Rows of results that an epilogue finishes (engine/run/epilogue.h): a pass over plans.
//
// Behind the last op that writes any of a row of its rank's output comes OpCode::finish for it.
// What others store there counts as written by the op that waits for it (Operation::pushed); rows
// of which no op of their rank's writes a part (in place it lies there, or others have stored it
// unasked) are finished before the rank's end, when nobody is at its memory any more. Large ops
// that finish rows, and that nobody waits for, are cut at borders of rows, so that a piece is still
// in the cache when its rows are finished; behind the others rows are finished from the last one
// back. Whatever else a plan does stays as it is, and so do the results' bits.
#pragma once

#include <cstddef>
#include <span>

#include "engine/compile/plan_limits.h"
#include "engine/run/plan.h"

namespace rankine {

// Of a plan that still has the ops that only wait (LowerOptions::keeps_waits); they go here.
// output_bytes: of each rank, a multiple of row_bytes. Pieces are of at least `piece` bytes
// (Costs::part).
void finish_rows(Plan& plan, std::span<const std::size_t> output_bytes, std::size_t row_bytes,
                 std::size_t piece, PlanMeter* meter = nullptr);

}  // namespace rankine
