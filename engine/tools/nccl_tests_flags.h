// Flags of nccl-tests that have nothing to set here, because what they ask for is so anyway, or
// because there is no such thing among threads: command lines that people have go on working, or
// are told what to write instead. Names and numbers: nccl-tests 2.19, README.md.
#pragma once

#include "engine/tools/arguments.h"

namespace rankine::tools {

void add_nccl_tests_flags(Command app);

}  // namespace rankine::tools
