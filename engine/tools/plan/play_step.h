// The collectives of a planned step, played: groups split off by axis, real buffers, on a live
// network or at this machine's own speed.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "engine/base/status.h"
#include "engine/tools/plan/step.h"

namespace rankine::tools {

struct PlayedCollective {
  PlannedCollective planned;
  double seconds = 0;      // of the model, or of this machine: until its last rank was done
  std::int64_t wrong = 0;  // bytes of results, on all ranks
};

struct PlayOptions {
  bool network = true;  // the machine's, on a virtual clock; else full speed
  std::chrono::milliseconds timeout{30'000};
};

// Each distinct collective of the plan once, all its groups at the same time. Data are bytes, their
// sums modulo 256. At full speed it is played a few times, and the median counts. Errors: those of
// Team and split(), and memory that this machine has not.
Result<std::vector<PlayedCollective>> play_collectives(const StepPlan& plan,
                                                       const PlayOptions& options);

}  // namespace rankine::tools
