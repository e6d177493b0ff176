// What tune finds out: contests measured, a choice made in each, and that choice measured again.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/api/tuning/tuning.h"
#include "engine/tools/c_real_trials.h"
#include "engine/tools/console.h"
#include "engine/tools/contest.h"

namespace rankine::tools {

// A contest that is over: what would have been taken, and what that costs.
struct Verdict {
  Contest contest{};  // contexts: those measured after the choice
  const Algorithm* standard = nullptr;
  const Algorithm* table = nullptr;  // nullptr: the table is silent here, so the default stands
  double chosen_with = 1;            // the worst regret seen while choosing
  // By protocol, where the contest was measured: times' medians, and the regrets of the two.
  std::vector<Context> medians{};
  std::vector<double> standard_regrets{}, table_regrets{};

  // A median of fewer rounds says little.
  bool judged() const { return contest.rounds() >= kFewestRounds; }
};

struct TunePlan {
  std::vector<int> ranks;
  std::vector<Collective> collectives;
  std::vector<std::size_t> sizes;
  int rounds;         // of choosing and of judging, at most
  bool until_budget;  // and no longer than there is time
  Costs costs{};      // that calls are made with
};

// Measures among so many ranks for `seconds` and appends what comes of it. With a table its choices
// are judged; without one they are made. All rounds go to `trials`, or nowhere where that is
// nullptr. Errors: those of the calls, and memory that is not there.
Status reach_verdicts(const TunePlan& plan, int ranks, const TuningTable* table, double seconds,
                      Progress& progress, std::vector<Verdict>& verdicts, CRealTrials* trials);

}  // namespace rankine::tools
