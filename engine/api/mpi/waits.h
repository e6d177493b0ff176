// How a rank over MPI waits: for messages, for room, and for the thread that calls MPI. The inside
// of member_state.h, for its source files only.
#pragma once

#include <cstdint>

#include "engine/api/idling.h"
#include "engine/api/mpi/member_state.h"
#include "engine/run/machine.h"

namespace rankine::mpi {

template <class Look, class Late>
Status Member::State::wait_until(const Look& look, const Late& late) {
  bool done = false;
  for (std::uint32_t probe = 0; probe < policy.probes; ++probe) {
    Status status = look(done);
    if (done || !status.ok()) return status;
    pause_cpu();
  }
  // It naps in the end: no message of MPI's wakes a process, and none of memory's.
  Idling idling(policy, policy.probes);
  for (;;) {
    Status status = look(done);
    if (done || !status.ok()) return status;
    let_go_on();
    if (!idling.once()) continue;
    if (Status over = process->heard(thread); !over.ok()) return over;
    if (time_has_passed()) return late();
  }
}

}  // namespace rankine::mpi
