// Why it is over, for processes that share memory: the first that fails says it to all.
#pragma once

#include <cstdint>

#include "engine/base/status.h"
#include "engine/run/machine.h"

namespace rankine {

// Zeroed memory is one that nobody has ended. Lock-free: who is killed while it speaks holds nobody
// up for long.
class SharedEnding {
 public:
  Atomic<bool>& ended() noexcept { return ended_; }
  bool has_ended() const noexcept { return ended_.load(std::memory_order_acquire); }

  // Ends it for that reason, where it has not ended before.
  void end(const Status& reason) noexcept;
  // By whoever has set ended() itself, once. Async-signal-safe; long texts are cut.
  void say(Code code, const char* text) noexcept;
  // Why, of what has ended: waits a little for the process that is about to say so. Code::system
  // where that has been written over.
  Status why() const noexcept;

 private:
  Atomic<bool> ended_{false};
  Atomic<bool> said_{false};
  // Whether code and text are what say() has left there: a program may write over shared memory.
  std::uint64_t check_of_what_is_said() const noexcept;

  std::uint32_t code_ = 0;
  std::uint64_t check_ = 0;
  char text_[1000] = {};
};

}  // namespace rankine
