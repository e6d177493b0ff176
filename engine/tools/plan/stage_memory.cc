#include "engine/tools/plan/stage_memory.h"

#include <cstddef>

namespace rankine::tools {

std::vector<Memory> stage_memories(const StepPlan& plan) {
  const std::size_t stages = plan.pipeline.stages.size();
  std::vector<Memory> out(stages, plan.memory);
  for (std::size_t s = 0; s < stages; ++s) {
    Memory& memory = out[s];
    const double of_one = plan.memory.activations / plan.memory.micro_batches_kept;
    memory.micro_batches_kept =
        plan.pipeline.most_kept(static_cast<int>(s), plan.mapping.interleave);
    memory.activations = of_one * memory.micro_batches_kept;
    if (s > 0 && s + 1 < stages) memory.embedding_parameters = memory.embedding_state = 0;
  }
  return out;
}

}  // namespace rankine::tools
