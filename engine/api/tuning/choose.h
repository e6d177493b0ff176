// choose() picks the algorithm of a call that names none.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/tuning/tuning.h"
#include "engine/base/costs.h"
#include "engine/base/status.h"
#include "engine/compile/program.h"
#include "engine/compile/ssa.h"
#include "engine/network/fabric.h"
#include "engine/network/predict.h"
#include "engine/run/policy.h"

namespace rankine {

struct Choice {
  const Algorithm* algorithm = nullptr;
  const TuningRow* row = nullptr;  // the deciding row of the table; nullptr: the costs decided
  std::vector<std::size_t Costs::*> by{};  // the deciding costs, in the order of the questions
  // If the table has no row but has c_real for a similar number of ranks: all algorithms with a
  // c_real, the least expected time first. Otherwise empty.
  std::vector<Candidate> by_model{};
  bool by_c_real = false;  // c_real decided against the costs
};

// c_real are measured for some numbers of ranks. They are used for up to kRanksReach times as many
// ranks, and down to as small a part. Within one regime they vary by about kMargin from size to
// size. So the choice by costs stays, unless it has a c_real too and its expected time is more than
// kMargin times the least expected time.
inline constexpr double kRanksReach = 2, kMargin = 1.3;

// Chooses by the table if it covers the question; otherwise by the costs of shared memory, or by
// the model's times multiplied by c_real. `bytes` is M (the vector; for all_to_all one rank's send
// buffer).
Choice choose(Collective collective, int ranks, std::size_t bytes, Buffers buffers,
              const TuningTable* table, const Costs& costs);
// Chooses by the costs only.
const Algorithm& default_algorithm(Collective collective, int ranks, std::size_t bytes,
                                   Buffers buffers = Buffers::apart, const Costs& costs = {});

// The class of the trials of such a call of M bytes (engine/run/form_trials.h); none: it makes no
// trials.
std::optional<std::size_t> trial_class_of(Collective collective, int ranks, std::size_t bytes,
                                          Buffers buffers, const Costs& costs);
// The algorithm of a form that ranks try beside a plan by `first`.
const Algorithm& algorithm_of(Form form, const Algorithm& first, Buffers buffers);

// For calls that need given brackets, if the choice above does not have them: the algorithms to
// try, in this order. First the algorithms expected to be fastest in shared memory, then all others
// that may be chosen, in the catalogue's order. The compiled plan shows if an algorithm has the
// brackets (engine/compile/ssa.h).
std::vector<const Algorithm*> lines_to_try(Bracket bracket, Collective collective, int ranks,
                                           std::size_t bytes, Buffers buffers, const Costs& costs);

// For sums of 16-bit and 8-bit floats, if the choice is not a single fold: true if a single-fold
// algorithm is faster than the choice with f32 elements.
bool one_fold_is_faster(Collective collective, int ranks, std::size_t bytes,
                        std::size_t element_bytes, const Costs& costs);

// The brackets in which an algorithm adds among `params.ranks` ranks: "flat", "canonical", "flat,
// canonical" or "other" (engine/compile/ssa.h). Visits every addition.
std::string brackets_in_words(const Algorithm& entry, const Params& params);

// Segments of a pipelined algorithm when the caller gives none.
int choose_segments(const Algorithm& algorithm, int ranks, std::size_t bytes,
                    const Costs& costs = {});

// The model's time for such a call on this machine (machine_fabric()), with the same segments as a
// real call. An algorithm that cannot run has a refusal. Errors: those of predict_one().
Result<Candidate> predict_on_threads(const Algorithm& algorithm, int ranks, std::size_t bytes,
                                     const Fabric& machine, const Costs& costs = {});

// The bytes of data that half a board holds among `ranks` ranks. Many ranks get less, because each
// reads much of the others' data.
std::size_t board_bytes(int ranks, const Costs& costs = {});

}  // namespace rankine
