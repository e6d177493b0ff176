// Which algorithm a call gets when the caller names none.
#pragma once

#include <cstddef>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/tuning.h"
#include "engine/base/costs.h"
#include "engine/compile/program.h"

namespace rankine {

struct Choice {
  const Algorithm* algorithm = nullptr;
  const TuningRow* row = nullptr;          // of the table that says so; nullptr: the costs decided
  std::vector<std::size_t Costs::*> by{};  // these, in the order in which they were asked
};

// What the table says, where there is one and it covers the question; else what the costs of shared
// memory say. `bytes` is M (the vector; one rank's send buffer for all_to_all).
Choice choose(Collective collective, int ranks, std::size_t bytes, Buffers buffers,
              const TuningTable* table, const Costs& costs);
// The latter alone.
const Algorithm& default_algorithm(Collective collective, int ranks, std::size_t bytes,
                                   Buffers buffers = Buffers::apart, const Costs& costs = {});

// Segments of a pipelined algorithm when the caller gives none.
int choose_segments(const Algorithm& algorithm, int ranks, std::size_t bytes,
                    const Costs& costs = {});

// Of data that half a board holds, among so many ranks. Above it direct calls are as fast: between
// two ranks they read what does not change where it is; many ranks read much of each other.
std::size_t board_bytes(int ranks, const Costs& costs = {});

}  // namespace rankine
