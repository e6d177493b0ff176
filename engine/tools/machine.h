// The machine and the way ranks sit on it, as reports name them.
#pragma once

#include <string>
#include <vector>

#include "engine/api/version.h"
#include "numa/cpus.h"
#include "numa/placement.h"
#include "numa/topology.h"

namespace rankine::tools {

struct MachineReport {
  std::string host;
  std::string cpu;  // "AMD EPYC 9B45", or "unknown CPU"
  Topology topology = Topology::flat({}, false);
  CpuBudget budget{};
  std::string isa;  // of the kernels that run: "avx512_bf16"
};

// To be called before anything is pinned: the calling thread's affinity counts.
MachineReport read_machine();

// "cpus 0-1", "64 ranks on cpus 0-1", "not pinned".
std::string describe_placement(const std::vector<RankReport>& ranks);

// What the machine refused, one line each; ranks with the same refusals share a line.
std::vector<std::string> refusals(const std::vector<RankReport>& ranks);

std::string utc_now();    // "2026-11-20T14:03:07Z"
std::string local_now();  // "2026-11-20 14:03:07", where TZ says

}  // namespace rankine::tools
