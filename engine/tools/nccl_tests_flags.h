// Flags of nccl-tests that set little or nothing here, because what they ask for is so anyway, or
// because there is no such thing among threads. Command lines for nccl-tests work unchanged: one
// warning names the flags that have no effect, and what to write instead. Names and numbers:
// nccl-tests 2.19, README.md.
#pragma once

#include "engine/tools/arguments.h"
#include "engine/tools/perf_cases.h"

namespace rankine::tools {

// -g goes to ranks_per_thread, flags without effect to PerfOptions::without_effect.
void add_nccl_tests_flags(Command app, PerfOptions& options);

}  // namespace rankine::tools
