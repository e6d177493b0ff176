// The order of ZB-V (Qi et al., Zero Bubble Pipeline Parallelism, 2023, section 6): every stage has
// two parts of the model, of which the first lie down the pipeline and the second back up again, so
// that the first stage has both ends. No bubble where forward, backward and weights take as long as
// one another, and no more kept than in 1F1B.
#pragma once

#include <vector>

#include "engine/tools/plan/pipeline.h"

namespace rankine::tools {

// A stage's tasks, without times.
std::vector<Task> zbv_order(int stages, int stage, int micro_batches);

}  // namespace rankine::tools
