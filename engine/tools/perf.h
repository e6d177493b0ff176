// rankine perf: real collectives on pinned threads, measured and checked, in nccl-tests' shape.
#pragma once

#include "engine/tools/arguments.h"
#include "engine/tools/console.h"
#include "engine/tools/perf_cases.h"

namespace rankine::tools {

Subcommand add_perf(Command tool);

// Exit::wrong where an element was wrong or the average stayed below min_busbw.
Result<Exit> perf(const PerfOptions& options, Console& console);

}  // namespace rankine::tools
