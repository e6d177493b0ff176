// A training on a modelled machine: what the plan says of its steps, and how long passes take.
#pragma once

#include "engine/base/status.h"
#include "engine/tools/plan/machine.h"
#include "engine/tools/plan/step.h"
#include "engine/tools/train/trainer.h"

namespace rankine::tools {

// With f32 throughout, the trainer's buckets, and the cheapest of all algorithms. Errors: those of
// plan_step(). The machine must live as long as the plan.
Result<StepPlan> plan_training(const Training& training, const Machine& machine);

Pace pace_of(const StepPlan& plan);

}  // namespace rankine::tools
