// Plays cases in processes of their own, and watches them: what hangs is killed and counted, what
// dies is counted, and the rest goes on in a new process.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/base/status.h"
#include "engine/faults/fault.h"
#include "engine/run/machine.h"

namespace rankine::faults {

struct RunnerOptions {
  int jobs = 0;  // processes at once; 0: one per core that we may use, by affinity and quota
  // A case hangs when no call of its process has come to its end for so long. Many times what any
  // call is promised (lateness is judged call by call), so that a loaded machine is no hang.
  std::int64_t patience_ns = 60'000'000'000;
  std::function<std::int64_t()> clock = now_ns;  // that it is told by
  // After each case: how many have been played, and that one.
  std::function<void(std::size_t done, const FaultCase& last)> progress{};
};

struct CaseResult {
  FaultCase test;
  Tally tally;
  double seconds = 0;
};

// In the order of `cases`. To be called in a process without other threads, since it forks; the
// children make no communicator before their first case. Errors: no process, no pipe.
Result<std::vector<CaseResult>> run_cases(std::span<const FaultCase> cases,
                                          const RunnerOptions& options = {});

}  // namespace rankine::faults
