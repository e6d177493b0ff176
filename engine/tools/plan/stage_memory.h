// What a rank of each pipeline stage keeps in memory: of the first stage alone, memory.h says it by
// formulas.
#pragma once

#include <vector>

#include "engine/tools/plan/memory.h"
#include "engine/tools/plan/step.h"

namespace rankine::tools {

// Of every stage, the first one first. Micro-batches that wait at once are counted in the pipeline
// as it was played: from the begin of a forward pass to the end of what needs its activations last.
// The first stage has the embedding, the last one the output matrix, which is as large.
std::vector<Memory> stage_memories(const StepPlan& plan);

}  // namespace rankine::tools
