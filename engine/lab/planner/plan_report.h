// Plans a decode step (one further token for every sequence of a batch), and writes plans of
// training and decode steps as text and JSON.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/cli/table.h"
#include "engine/lab/planner/machine.h"
#include "engine/lab/planner/model.h"
#include "engine/lab/planner/step.h"

namespace rankine::tools {

// A decode step's plan. Sequences are distributed over dp x ep replicas; micro_batch sequences go
// through the layers together, and each has model.sequence earlier tokens. A product takes the
// longer of its flops and the reading of its weights; attention reads all keys and values.
// Communication does not overlap computing. All passes are launched at once, so pass_seconds do not
// count.
struct DecodePlan {
  Model model;
  Mapping mapping;
  Machine machine;
  std::vector<PlannedComputation> computations;
  std::vector<PlannedCollective> collectives;
  double weight_bytes = 0;  // of a rank
  double cache_bytes = 0;   // keys and values, of a rank
  double seconds = 0;       // time to the next token of every sequence

  // With as many batches in flight as there are stages, each stage is always at work.
  double tokens_per_second() const {
    return mapping.micro_batch * mapping.data_parallel() * mapping[Axis::pp] / seconds;
  }
  double memory() const { return weight_bytes + cache_bytes; }
};

// Errors: errors of check_model(), check_mapping() and Prices, and options that a decode step lacks
// (sp, split norms).
Result<DecodePlan> plan_decode(const Model& model, const Mapping& mapping, const Machine& machine,
                               Prices& prices);

// A plan as text: time, memory and every collective; `terms` adds the terms of each number.
std::string plan_text(const StepPlan& plan, bool terms);
std::string plan_text(const DecodePlan& plan, bool terms);

// Every collective of a rank.
Table collectives_table(const Mapping& mapping, const std::vector<PlannedCollective>& collectives);

// The plan's subject in one line: "gpt_175b over 64 ranks of a100: tp 8, pp 8, norms split".
std::string plan_title(const StepPlan& plan);

nlohmann::ordered_json plan_json(const StepPlan& plan);
nlohmann::ordered_json plan_json(const DecodePlan& plan);

}  // namespace rankine::tools
