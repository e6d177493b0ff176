// Searches the fastest mapping of a model over a number of ranks by trying all mappings, and
// compares a plan with the survey's formulas.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/cli/table.h"
#include "engine/lab/planner/machine.h"
#include "engine/lab/planner/model.h"
#include "engine/lab/planner/step.h"
#include "engine/papers/evaluate.h"
#include "engine/read/count.h"

namespace rankine::tools {

struct SearchQuestion {
  int ranks = 1;
  int batch = 1;  // sequences per step
  // The members that all tried mappings share: all except axes, micro-batches, interleave, norms,
  // recomputing and ZeRO.
  Mapping common{};
};

struct SearchResult {
  std::vector<StepPlan> best;  // the fastest mappings that fit into memory, fastest first
  std::size_t tried = 0;       // mappings that were played
  std::size_t too_large = 0;   // mappings that were refused before, because memory is too small
  Memory least{};              // the smallest need of the refused mappings; 0 without one
};

// Returns at most `most` mappings, only the fastest of each set of axes. Errors: no mapping divides
// the model (the error names the numbers of ranks that would), and errors of plan_step().
Result<SearchResult> search_mappings(const Model& model, const Machine& machine, const Menu& menu,
                                     const SearchQuestion& question, std::size_t most);

// The plan's losses against the best: "1.08 x the time: 12.3 ms more exposed along tp, 5.1 ms more
// bubble".
std::string slowdown_reason(const StepPlan& plan, const StepPlan& best);

// A row of the survey's table of costs per axis of parallelism (Lu, Collective Algorithms, section
// 9): the formula with a plan's numbers beside the simulated time. The rows are the claims of that
// section (engine/papers/lu.toml).
struct SurveyRow {
  const claims::Claim* claim = nullptr;
  Axis axis = Axis::dp;
  const PlannedCollective* planned = nullptr;  // its ranks, bytes and link are the row's; nullptr:
                                               // the mapping does not use the axis
  claims::Case numbers{};                      // seconds that the survey states, and simulated ones
};

// All ten rows in the survey's order. `plan` must outlive them. An axis' row uses the collective
// that the survey names if the plan has it along that axis, else the plan's reduce-scatter, which
// replaces it.
std::vector<SurveyRow> survey_rows(const StepPlan& plan);

Table survey_table(const StepPlan& plan, const std::vector<SurveyRow>& rows);

}  // namespace rankine::tools
