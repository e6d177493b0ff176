#include "engine/tools/plan/stage_memory.h"

#include <cstddef>

namespace rankine::tools {

std::vector<Memory> stage_memories(const StepPlan& plan) {
  const std::size_t stages = plan.pipeline.stages.size();
  std::vector<Memory> out(stages, plan.memory);
  for (std::size_t s = 0; s < stages; ++s) {
    Memory& memory = out[s];
    const double of_one = plan.memory.activations / plan.memory.micro_batches_kept;
    memory.micro_batches_kept = plan.pipeline.most_kept(static_cast<int>(s), plan.mapping.parts());
    memory.activations = of_one * memory.micro_batches_kept;
    const int last = last_stage(plan.mapping.order, plan.mapping[Axis::pp]);
    if (s > 0 && static_cast<int>(s) != last)
      memory.embedding_parameters = memory.embedding_state = 0;
  }
  return out;
}

}  // namespace rankine::tools
