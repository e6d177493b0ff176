// Sums of floats of 16 and 8 bits that a schedule adds up in several folds: the schedule moves f32.
//
// One fold adds up in f32 and rounds once. Several folds would round each sum that one of them
// hands to another. So the plan is made for f32: each rank widens its input into its scratch, the
// schedule runs there, and each rank narrows its result into its output. A message has twice or
// four times the bytes, and its bits are those of f32 rounded once, with each algorithm, transport
// and network.
#pragma once

#include "algorithms/schedule/collective.h"
#include "engine/run/kernels/types.h"
#include "engine/run/layout.h"
#include "engine/run/plan.h"

namespace rankine {

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
