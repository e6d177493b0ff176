// Which algorithm a call gets when the caller names none.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/tuning/tuning.h"
#include "engine/base/costs.h"
#include "engine/base/status.h"
#include "engine/compile/program.h"
#include "engine/compile/versions.h"
#include "engine/network/fabric.h"
#include "engine/network/predict.h"

namespace rankine {

struct Choice {
  const Algorithm* algorithm = nullptr;
  const TuningRow* row = nullptr;          // of the table that says so; nullptr: the costs decided
  std::vector<std::size_t Costs::*> by{};  // these, in the order in which they were asked
  // Where the table has no row, but c_real among about so many ranks: what has one of them, the
  // least expected time first. Else empty.
  std::vector<Candidate> by_model{};
  bool by_c_real = false;  // they decided, against the costs
};

// c_real are measured among some numbers of ranks; they are asked up to kRanksReach times as many,
// and down to as small a part. Within one regime they lie about kMargin apart from size to size, so
// what the costs say stays unless it has a c_real too and its expected time is more than kMargin
// times the least one.
inline constexpr double kRanksReach = 2, kMargin = 1.3;

// What the table says, where there is one and it covers the question; else what the costs of shared
// memory say, or what c_real times the model does. `bytes` is M (the vector; one rank's send buffer
// for all_to_all).
Choice choose(Collective collective, int ranks, std::size_t bytes, Buffers buffers,
              const TuningTable* table, const Costs& costs);
// What the costs say alone.
const Algorithm& default_algorithm(Collective collective, int ranks, std::size_t bytes,
                                   Buffers buffers = Buffers::apart, const Costs& costs = {});

// Where contributions are to be added up in those brackets, and the choice above does not: lines to
// try, in this order. First what should be fastest in shared memory, then all others that are ever
// chosen, as the catalogue has them. Which of them do, their plans say (brackets.h).
std::vector<const Algorithm*> lines_to_try(Bracket bracket, Collective collective, int ranks,
                                           std::size_t bytes, Buffers buffers, const Costs& costs);

// Of sums of 16- and 8-bit floats, where the choice is no single fold: whether an algorithm that is
// one beats the choice with f32 in the place of its elements.
bool one_fold_is_faster(Collective collective, int ranks, std::size_t bytes,
                        std::size_t element_bytes, const Costs& costs);

// How an algorithm that reduces adds up among so many ranks: "flat", "canonical", "flat, canonical"
// or "other" (brackets.h). Looks at every addition.
std::string brackets_in_words(const Algorithm& line, const Params& params);

// Segments of a pipelined algorithm when the caller gives none.
int choose_segments(const Algorithm& algorithm, int ranks, std::size_t bytes,
                    const Costs& costs = {});

// What the model says of such a call on this machine (machine_fabric()), in as many segments. An
// algorithm that cannot run has a refusal. Errors: those of predict_one().
Result<Candidate> predict_on_threads(const Algorithm& algorithm, int ranks, std::size_t bytes,
                                     const Fabric& machine, const Costs& costs = {});

// Of data that half a board holds, among so many ranks: less among many, who read much of each
// other.
std::size_t board_bytes(int ranks, const Costs& costs = {});

}  // namespace rankine
