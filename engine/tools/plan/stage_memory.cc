#include "engine/tools/plan/stage_memory.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace rankine::tools {
namespace {

// Of one stage's tasks, as a number of whole micro-batches, each of which has so many parts.
double most_kept(const std::vector<Task>& tasks, int parts) {
  std::map<std::pair<int, int>, std::pair<double, double>> kept;  // from when, until when
  for (const Task& task : tasks) {
    auto& [from, until] = kept[{task.micro_batch, task.part}];
    if (task.pass == Pass::forward) from = task.begin;
    until = std::max(until, task.end);
  }
  // What ends when another begins makes room for it.
  std::vector<std::pair<double, int>> changes;
  for (const auto& [which, times] : kept) {
    changes.emplace_back(times.first, 1);
    changes.emplace_back(times.second, -1);
  }
  std::sort(changes.begin(), changes.end());
  int now = 0, most = 0;
  for (const auto& [time, change] : changes) most = std::max(most, now += change);
  return static_cast<double>(most) / parts;
}

}  // namespace

std::vector<Memory> stage_memories(const StepPlan& plan) {
  const std::size_t stages = plan.pipeline.stages.size();
  std::vector<Memory> out(stages, plan.memory);
  for (std::size_t s = 0; s < stages; ++s) {
    Memory& memory = out[s];
    const double of_one = plan.memory.activations / plan.memory.micro_batches_kept;
    memory.micro_batches_kept = most_kept(plan.pipeline.stages[s], plan.mapping.parts());
    memory.activations = of_one * memory.micro_batches_kept;
    const int last = last_stage(plan.mapping.order, plan.mapping[Axis::pp]);
    if (s > 0 && static_cast<int>(s) != last)
      memory.embedding_parameters = memory.embedding_state = 0;
  }
  return out;
}

}  // namespace rankine::tools
