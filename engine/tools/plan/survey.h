// The survey's table of what each axis of parallelism costs (Lu, Collective Algorithms, section 9),
// with the numbers of a plan: each row's formula beside what the simulator says.
#pragma once

#include <string>
#include <vector>

#include "engine/papers/evaluate.h"
#include "engine/tools/plan/step.h"
#include "engine/tools/table.h"

namespace rankine::tools {

// The rows are the claims of that section (engine/papers/lu.toml).
struct SurveyRow {
  const claims::Claim* claim = nullptr;
  Axis axis = Axis::dp;
  const PlannedCollective* planned = nullptr;  // whose ranks, bytes and link it has; nullptr: the
                                               // mapping does not use the axis
  claims::Case numbers{};                      // seconds that the survey states, and simulated ones
};

// All ten, in the survey's order. `plan` must live as long. An axis' row has the collective that it
// names where the plan has it along that axis, else the reduce-scatter that takes its place.
std::vector<SurveyRow> survey_rows(const StepPlan& plan);

Table survey_table(const StepPlan& plan, const std::vector<SurveyRow>& rows);

}  // namespace rankine::tools
