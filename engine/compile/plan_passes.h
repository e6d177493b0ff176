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

#include "algorithms/schedule/collective.h"
#include "engine/compile/versions.h"
#include "engine/run/kernels/types.h"
#include "engine/run/plan.h"

namespace rankine {

// Of a plan that still has the ops that only wait (LowerOptions::keeps_waits); they go here.
// output_bytes: of each rank, a multiple of row_bytes. Pieces are of at least `piece` bytes
// (Costs::part).
void finish_rows(Plan& plan, std::span<const std::size_t> output_bytes, std::size_t row_bytes,
                 std::size_t piece, PlanMeter* meter = nullptr);

// Sums of floats of 16 and 8 bits that a schedule adds up in several folds: the schedule moves f32.
//
// One fold adds up in f32 and rounds once. Several folds would round each sum that one of them
// hands to another. So the plan is made for f32: each rank widens its input into its scratch, the
// schedule runs there, and each rank narrows its result into its output. A message has twice or
// four times the bytes, and its bits are those of f32 rounded once, with each algorithm, transport
// and network.

// Whether results of this operation are those of f32, rounded once.
constexpr bool adds_up_in_f32(DataType type, ReduceOp op) {
  return is_float(type) && type != DataType::f32 && type != DataType::f64 && rounds(type, op);
}

// Moves the buffers of a plan for f32 into the scratch, widens before the first op and narrows
// after the last one. `users`, `moved`: the layouts of the call's buffers and of what the plan
// moves. An op that waits for what others store must still be in the plan.
void widen_and_narrow(Plan& plan, const Goal& goal, DataType type, const Layout& users,
                      const Layout& moved);

}  // namespace rankine
