// What the engine says to each question of formula_tasks.h, of its letters.
#pragma once

#include "algorithms/formula.h"
#include "algorithms/schedule/schedule.h"

namespace rankine::tools {

using TaskAnswer = formulas::Value(const formulas::Letters& letters);

TaskAnswer ring_bytes, ring_time, alternate_ring_time, tree_rounds, chain_broadcast, tree_broadcast,
    pipeline_broadcast, torus_rounds, crossover_bytes, fsdp_bytes, tp_bytes, accumulation_bytes,
    bubble_seconds;

// An all-reduce in which every rank hands whole vectors on to the next, its own first, on a plane
// of their own, and adds up what comes by. Ranks add in different orders.
Schedule alternate_ring(int ranks);

}  // namespace rankine::tools
