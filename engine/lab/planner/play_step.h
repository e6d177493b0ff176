// The collectives of a planned step, played: groups split off by axis, real buffers, on a live
// network or at this machine's own speed.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/base/status.h"
#include "engine/lab/planner/step.h"

namespace rankine::tools {

// The network where a byte takes so many times as long: buffers of such a part of M take what those
// of M do here, exactly.
Fabric slowed(Fabric network, const Rational& times);

struct PlayedCollective {
  PlannedCollective planned;
  std::uint64_t bytes = 0;  // M of the buffers
  double seconds = 0;       // of the model, or of this machine: until its last rank was done
  std::int64_t wrong = 0;   // bytes of results, on all ranks
};

struct PlayOptions {
  bool network = true;  // the machine's, on a virtual clock; else full speed
  // On the network: where M is more, buffers are thinned to that, and a byte takes as much longer,
  // so that every message takes exactly what the planned one does. Where no such part of M has
  // whole bytes for all blocks of the algorithm, buffers are as planned.
  std::uint64_t most_bytes = std::numeric_limits<std::uint64_t>::max();
  std::chrono::milliseconds timeout{30'000};
};

// Each distinct collective of the plan once, all its groups at the same time. Data are bytes, their
// sums modulo 256. At full speed it is played a few times, and the median counts. Errors: those of
// Team and split(), and memory that this machine has not.
Result<std::vector<PlayedCollective>> play_collectives(const StepPlan& plan,
                                                       const PlayOptions& options);

}  // namespace rankine::tools
