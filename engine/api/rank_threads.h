// The threads of this process that play ranks, on whatever communicator: those that have made a
// call on a member that lives, and those that make progress for ranks (progress_thread.h). Where they outnumber the cores nobody spins (Crowd in crossbar.h).
#pragma once

#include "engine/run/machine.h"

namespace rankine {

// Of this process; a forked child begins with none. Thread-safe.
class RankThreads {
 public:
  // One more member, or one less, whose calls are made by that thread (thread_id()). add() may
  // throw std::bad_alloc, and waits for nobody that stands still: false, then; ask again later.
  static bool add(int thread);
  static void remove(int thread) noexcept;
  // How many threads have members.
  static const Atomic<int>& count() noexcept;
};

}  // namespace rankine
