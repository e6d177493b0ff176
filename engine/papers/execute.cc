#include "engine/papers/execute.h"

#include "engine/network/clocked_run.h"

namespace rankine::claims {

Result<Ticks> execute(const Schedule& schedule, const Goal& goal, const Fabric& fabric,
                      const Pricing& pricing, Sync sync) {
  ThrottleOptions options;
  options.mode = ClockMode::virtual_time;
  options.sync = sync;
  options.timeout_ns = 60'000'000'000;
  const ClockedRun run = run_clocked(schedule, goal, fabric, pricing, options);
  if (!run.status.ok()) return run.status;
  return run.clock->end();
}

}  // namespace rankine::claims
