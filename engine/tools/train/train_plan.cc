#include "engine/tools/train/train_plan.h"

#include <vector>

#include "engine/read/count.h"

namespace rankine::tools {

Result<StepPlan> plan_training(const Training& training, const Machine& machine) {
  Mapping mapping = training.mapping;
  mapping.bucket_bytes = Training::kBucketBytes;
  Prices prices(machine, mapping.ranks(), *find_menu("all"));
  return plan_step(training.model, mapping, machine, prices);
}

Pace pace_of(const StepPlan& plan) {
  const auto pass = [&](const std::vector<Computation>& computations, Phase phase) {
    double seconds = 0;
    for (const Computation& c : computations) {
      if (c.phase == phase) seconds += seconds_of(c, plan.machine);
    }
    return seconds;
  };
  const std::vector<Computation> layer = layer_work(plan.model, plan.mapping).computations;
  const std::vector<Computation> head = head_work(plan.model, plan.mapping);
  const auto of_layer = [&](Phase phase) {
    return pass(layer, phase) + launching_seconds(phase, plan.mapping, plan.machine);
  };
  Pace pace{.layer_forward = of_layer(Phase::forward),
            .layer_backward = of_layer(Phase::backward),
            .head_forward = pass(head, Phase::forward),
            .head_backward = pass(head, Phase::backward)};
  for (const PlannedComputation& c : plan.computations) {
    if (c.what == kOptimizer) pace.optimizer = c.times * c.seconds;
  }
  return pace;
}

}  // namespace rankine::tools
