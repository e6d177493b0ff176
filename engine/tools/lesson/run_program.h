// Another program, run to its end: a learner's, or a compiler.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace rankine::tools {

struct ProgramLimits {
  std::chrono::seconds time;
  std::size_t bytes;  // of what it prints, and of what it complains about
};

struct ProgramEnd {
  std::string out, err;
  // Empty where its exit status is 0: "exit status 1", "Segmentation fault".
  std::string failure{};
};

// The first word names the program, which is looked for as shells do. It has nothing to read on its
// standard input. One that goes beyond its limits is killed, and so is one that a signal finds at
// work (`aborted`; needs an InterruptGuard). Errors: it cannot be run, and which limit it broke.
Result<ProgramEnd> run_program(std::vector<std::string> words, const ProgramLimits& limits);

}  // namespace rankine::tools
