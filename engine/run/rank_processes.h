// Where ranks are processes: what a crossbar needs of them beside the lines of all ranks, which lie
// in memory that all of them have at the same address.
//
// Such a crossbar runs barriers on the threads of all registered processes, wakes by futexes of the
// whole machine, and says why it has ended through here, since a Status is its process's own.
//
// Everything here is for the slow side of waiting and for the end, but for aborted() and
// have_barriers(), which are asked for once. Thread-safe.
#pragma once

#include "algorithms/schedule/blocks.h"
#include "engine/base/status.h"
#include "engine/run/machine.h"
#include "engine/run/slow_waits.h"

namespace rankine {

class RankProcesses {
 public:
  virtual ~RankProcesses() = default;

  // Whether that rank is played by this process.
  virtual bool is_here(Rank r) const noexcept = 0;
  // Whether this process makes what that rank shares as it is at first.
  virtual bool sets_up(Rank r) const noexcept = 0;
  virtual int process_of(Rank r) const noexcept = 0;
  // Whether that rank's process, another one, has ended or become another program. A microsecond.
  virtual bool has_ended(Rank r) const noexcept = 0;
  // The name of an algorithm that a rank has written down as an address in memory of all: this
  // process's own copy of it. nullptr: no algorithm has that name there.
  virtual const char* known_name(const char* said) const noexcept = 0;
  // Whether that rank has said that it takes part no more, elsewhere than on its bell here.
  virtual bool has_left(Rank r) const noexcept = 0;

  // Whether membarrier of all processes reaches each of these: the same in all of them.
  virtual bool have_barriers() const noexcept = 0;

  // In memory of all, zeroed at first.
  virtual Atomic<bool>& aborted() const noexcept = 0;
  virtual SlowWaits* slow_waits() const noexcept = 0;  // by rank

  // By whoever has set aborted(), once. Async-signal-safe.
  virtual void say_why(Code code, const char* text) noexcept = 0;
  // What that was: waits for it a little, since its process may have ended before it could say.
  virtual Status why() const noexcept = 0;
};

}  // namespace rankine
