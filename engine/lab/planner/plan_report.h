// One token more of every sequence of a batch: what a decode step costs, mapped to ranks.
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

// Sequences are shared out over dp x ep replicas; micro_batch of them go through the layers
// together, and each has model.sequence tokens behind it. A product takes the longer of its flops
// and of reading its weights; attention reads all keys and values. Nothing hides behind anything,
// and passes launch all at once: pass_seconds are not paid.
struct DecodePlan {
  Model model;
  Mapping mapping;
  Machine machine;
  std::vector<PlannedComputation> computations;
  std::vector<PlannedCollective> collectives;
  double weight_bytes = 0;  // of a rank
  double cache_bytes = 0;   // keys and values, of a rank
  double seconds = 0;       // until every sequence has its next token

  // With as many batches under way as there are stages, each stage is always at work.
  double tokens_per_second() const {
    return mapping.micro_batch * mapping.data_parallel() * mapping[Axis::pp] / seconds;
  }
  double memory() const { return weight_bytes + cache_bytes; }
};

// Errors: those of check_model(), check_mapping() and Prices; and what a decode step has none of
// (sp, split norms).
Result<DecodePlan> plan_decode(const Model& model, const Mapping& mapping, const Machine& machine,
                               Prices& prices);

// A plan of a step, as people read it and as programs do.

// Time, memory and every collective; with `terms` also what each is made of.
std::string plan_text(const StepPlan& plan, bool terms);
std::string plan_text(const DecodePlan& plan, bool terms);

// Every collective of a rank.
Table collectives_table(const Mapping& mapping, const std::vector<PlannedCollective>& collectives);

// "gpt_175b over 64 ranks of a100: tp 8, pp 8, norms split": what is planned, in a line.
std::string plan_title(const StepPlan& plan);

nlohmann::ordered_json plan_json(const StepPlan& plan);
nlohmann::ordered_json plan_json(const DecodePlan& plan);

}  // namespace rankine::tools
