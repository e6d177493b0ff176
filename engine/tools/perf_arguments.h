// perf's arguments: nccl-tests' own, and what there is beyond them.
#pragma once

#include "engine/tools/arguments.h"
#include "engine/tools/perf_cases.h"

namespace rankine::tools {

// Both must live as long as the command.
void add_perf_arguments(Command app, PerfOptions& options);

}  // namespace rankine::tools
