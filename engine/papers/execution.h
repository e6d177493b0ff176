// What live ranks make of the rows of the report: runs of a claim's cases, and of figures the times
// that their curves are drawn through.
//
// A claim has its cases, a figure's statement its panels. Of two of them, the last one and another
// about half as far, all runs are made that EvaluateOptions::most_ranks allows. Where it allows
// none, the case of the least run is made, but for runs of very many moves, or the panel's (L)
// forms; and where all have very many, the least run. So something is executed of every row that
// has a run of as many ranks as a communicator takes. Of a figure the live ranks make two sizes
// (points_of()): at others they would do the same, byte for byte, and only the network's prices
// would be others.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "engine/papers/evaluate.h"

namespace rankine::claims {

// Of rows that have been judged. Runs are made together, on all cores; `progress` as in
// Runs::execute().
void execute(std::span<Finding* const> rows, Runs& runs, const EvaluateOptions& options,
             const std::function<void(std::size_t done, std::size_t all)>& progress = {});

}  // namespace rankine::claims
