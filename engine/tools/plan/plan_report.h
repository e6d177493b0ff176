// A plan of a step, as people read it and as programs do.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/tools/plan/decode.h"
#include "engine/tools/plan/step.h"
#include "engine/tools/table.h"

namespace rankine::tools {

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
