// What tune prints: the fitted model, regrets by collective and by size, as text and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/api/tuning/tuning.h"
#include "engine/tools/console.h"
#include "engine/tools/cost_fit.h"
#include "engine/tools/cost_search.h"
#include "engine/tools/machine.h"
#include "engine/tools/verdict.h"

namespace rankine::tools {

struct TuneFindings {
  std::vector<CostPoint> points{};
  std::optional<CostFit> fit{};  // of the points; absent where a table was checked
  std::vector<CostFinding> costs{};
  std::vector<Verdict> verdicts{};
  std::vector<MeasuredCReal> c_real{};  // of the fit's model
  std::string no_c_real{};              // why there cannot be any
  std::string file{};                   // the table's
  bool written = false, complete = false;
};

// `sizes`: also a line for every size.
void print(const TuneFindings& findings, bool sizes, Console& console);
nlohmann::ordered_json to_json(const TuneFindings& findings, const MachineReport& machine);

}  // namespace rankine::tools
