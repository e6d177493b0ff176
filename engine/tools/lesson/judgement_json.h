// What is said of a learner's schedule or formula, as one JSON object: by check --json and on the
// page.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/tools/lesson/formula_tasks.h"
#include "engine/tools/lesson/judge.h"
#include "engine/tools/parameters_json.h"

namespace rankine::tools {

// `fabric` and `sync` are those that were judged on.
Json judgement_json(const WrittenSchedule& written, const Judgement& judged, const Fabric& fabric,
                    Sync sync);

// Without a miss the formula is right at the inputs of the seed.
Json formula_json(const FormulaTask& task, const std::string& formula, std::uint64_t seed,
                  const std::optional<FormulaMiss>& miss);

}  // namespace rankine::tools
