// The algorithms that a choice is between, as a table.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/api/tuning/tuning.h"
#include "engine/network/predict.h"
#include "engine/tools/table.h"

namespace rankine::tools {

// The choice first and marked, and behind all others what cannot run.
Table table_of(const std::vector<Candidate>& candidates);
// Where c_real come from: "c_real measured among 4 ranks, table of 2026-11-22T16:04:04Z".
std::string source_of(std::span<const MeasuredCReal> measured, const TuningTable& table);

}  // namespace rankine::tools
