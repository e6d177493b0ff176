// Ctrl-C while something is being measured: the work comes to an end and what has been measured is
// told. A second one ends the process as ever.
#pragma once

#include <csignal>

#include "engine/tools/console.h"

namespace rankine::tools {

// The signal that came since the newest InterruptGuard was made, SIGINT or SIGTERM; 0: none. What
// takes long looks here every now and then. From any thread.
int interruption() noexcept;
// 128 and the signal's number, as shells have it. Requires interruption() != 0.
Exit exit_of_interruption();

// While it lives, the first SIGINT and the first SIGTERM only make themselves known by
// interruption(). A signal that the process ignores stays ignored. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction on_interrupt_, on_terminate_;  // as they were
};

}  // namespace rankine::tools
