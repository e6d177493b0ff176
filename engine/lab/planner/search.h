// Which mapping of a model over so many ranks is the fastest: all are tried.
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
  int batch = 1;  // sequences of a step
  // What every mapping tried has: all but axes, micro-batches, interleave, norms, recomputing,
  // ZeRO.
  Mapping common{};
};

struct SearchResult {
  std::vector<StepPlan> best;  // the fastest that fit into memory, first the fastest
  std::size_t tried = 0;       // played through
  std::size_t too_large = 0;   // refused by memory, before
  Memory least{};              // of those: what the smallest needs; 0 of none
};

// At most `most` of the fastest: of each set of axes only its fastest mapping. Errors: no mapping
// divides the model (then with the ranks that would), and those of plan_step().
Result<SearchResult> search_mappings(const Model& model, const Machine& machine, const Menu& menu,
                                     const SearchQuestion& question, std::size_t most);

// "1.08 x the time: 12.3 ms more exposed along tp, 5.1 ms more bubble": what it loses to the best.
std::string why_slower(const StepPlan& plan, const StepPlan& best);

// The survey's table of what each axis of parallelism costs (Lu, Collective Algorithms, section 9),
// with the numbers of a plan: each row's formula beside what the simulator says.

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
