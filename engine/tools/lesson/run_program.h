// Another program, run to its end: a learner's, or a compiler. The only place that starts one.
//
// The program runs with the rights of the user. It gets a session of its own, nothing to read on
// its standard input, PATH and no other variable of ours, and limits. When it has ended, or must
// end, every process that it has started ends, too, also one that has left its process group.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace rankine::tools {

struct Program {
  std::vector<std::string> words;        // the first names the program, which is looked for in PATH
  std::string folder;                    // in which it runs
  std::vector<std::string> variables{};  // besides PATH: "TMPDIR=/tmp/x"
};

struct ProgramLimits {
  std::chrono::seconds time;
  std::size_t bytes;   // of its standard output, and of its standard error
  std::size_t memory;  // bytes of address space of each process, and of each file that it writes
};

struct ProgramEnd {
  std::string out, err;
  // Empty if its exit status is 0: "exit status 1", "Segmentation fault".
  std::string failure{};
};

// Errors: system if the program cannot be run; invalid_argument if it exceeds its time or prints
// too much; aborted if a signal interrupts this process (needs an InterruptGuard). A process that
// asks for too much memory gets none and fails by itself. One thread at a time: this process adopts
// the program's orphans meanwhile (PR_SET_CHILD_SUBREAPER), and may start no others.
Result<ProgramEnd> run_program(Program program, const ProgramLimits& limits);

}  // namespace rankine::tools
