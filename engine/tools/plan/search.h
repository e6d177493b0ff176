// Which mapping of a model over so many ranks is the fastest: all are tried.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/read/count.h"
#include "engine/tools/plan/machine.h"
#include "engine/tools/plan/mapping.h"
#include "engine/tools/plan/model.h"
#include "engine/tools/plan/step.h"

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

}  // namespace rankine::tools
