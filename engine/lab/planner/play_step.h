// Plays the collectives of a planned step: it splits groups off by axis and moves real buffers, on
// a modelled network or at this machine's full speed.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/base/status.h"
#include "engine/lab/planner/step.h"

namespace rankine::tools {

struct PlayedCollective {
  PlannedCollective planned;
  std::uint64_t bytes = 0;  // M of the buffers
  double seconds = 0;       // modelled or measured, until the last rank was done
  std::int64_t wrong = 0;   // wrong bytes of results, on all ranks
};

struct PlayOptions {
  bool network = true;  // true: the machine's network on a virtual clock; false: full speed
  // Only for `network`: buffers with a larger M are reduced to this, and a byte takes longer by the
  // same factor, so every message takes exactly its planned time. If no such part of M gives every
  // block of the algorithm whole bytes, buffers have the planned size.
  std::uint64_t most_bytes = std::numeric_limits<std::uint64_t>::max();
  std::chrono::milliseconds timeout{30'000};
};

// Plays each distinct collective of the plan once, all its groups at the same time. Data are bytes,
// and sums are modulo 256. At full speed each collective is played a few times, and the median
// counts. Errors: errors of Team and split(), and too little memory on this machine.
Result<std::vector<PlayedCollective>> play_collectives(const StepPlan& plan,
                                                       const PlayOptions& options);

}  // namespace rankine::tools
