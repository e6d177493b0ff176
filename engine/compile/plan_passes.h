// Two passes change plans: finish_rows() adds an epilogue's ops (engine/run/user_functions.h), and
// widen_and_narrow() converts the data of a plan that moves f32.
#pragma once

#include <cstddef>
#include <span>

#include "algorithms/schedule/collective.h"
#include "engine/compile/ssa.h"
#include "engine/run/kernels/types.h"
#include "engine/run/plan.h"

namespace rankine {

// Rows of results that an epilogue finishes. The last op that writes a part of a row of its rank's
// output is followed by OpCode::finish for the row. Data that others store there count as written
// by the op that waits for them (Operation::pushed). Rows that no op of their rank writes (they lie
// there in place, or others have stored them without a wait) are finished before the rank's end,
// when no other rank uses its memory any more. Large ops that finish rows and have no waiters are
// cut at borders of rows, so that a piece is still in the cache when its rows are finished; after
// other ops, rows are finished from the last one back. The rest of a plan stays unchanged, and so
// do the results' bits.

// For a plan that still has the ops that only wait (LowerOptions::keeps_waits); this pass removes
// them. output_bytes: per rank, a multiple of row_bytes. Pieces have at least `piece` bytes
// (Costs::sum_part_bytes).
void finish_rows(Plan& plan, std::span<const std::size_t> output_bytes, std::size_t row_bytes,
                 std::size_t piece, PlanningBudget* meter = nullptr);

// Sums of floats of 16 and 8 bits that a schedule adds up in several folds: the schedule moves f32.
//
// One fold adds up in f32 and rounds once. Several folds would round each partial sum. So the plan
// is made for f32: each rank widens its input into its scratch, the schedule runs there, and each
// rank narrows its result into its output. A message has two or four times the bytes, and the
// result's bits are those of f32 rounded once, with every algorithm, transport and network.

// True if results of this operation are computed in f32 and rounded once.
constexpr bool adds_up_in_f32(DataType type, ReduceOp op) {
  return is_float(type) && type != DataType::f32 && type != DataType::f64 && rounds(type, op);
}

// Moves the buffers of a plan for f32 into the scratch, widens before the first op and narrows
// after the last one. `users`: the layout of the call's buffers; `moved`: the layout of the data
// that the plan moves. The plan must still have the ops that wait for others' stores.
void widen_and_narrow(Plan& plan, const CollectiveSpec& goal, DataType type, const Layout& users,
                      const Layout& moved);

}  // namespace rankine
