// A call that was started and waits is put down: no thread is at it, and any may come back to it.
// A rank's record then says so, where it else names the thread that is at its call.
#pragma once

#include "engine/run/crossbar.h"

namespace rankine {

// As CallRecord::thread.
inline constexpr int kPutDown = -1;

// By who is at the call of rank r: no longer. So a thread that ends then takes no call with it, and
// whoever waits until it is quiet need not wait for this one.
inline void put_down(Crossbar& crossbar, Rank r) noexcept {
  // Release: pairs with wait_until_quiet().
  crossbar.record(r).thread.store(kPutDown, std::memory_order_release);
}

// The calling thread goes on with the call of rank r; who has just begun it is at it already.
// False: aborted, and other ranks' buffers may be gone.
inline bool come_back_to(Crossbar& crossbar, Rank r) noexcept {
  auto& thread = crossbar.record(r).thread;
  // Relaxed: written only by who is at the rank's calls, one at a time.
  if (thread.load(std::memory_order_relaxed) != kPutDown) return true;
  // Relaxed: begin() orders it before its look, as what it stores itself.
  thread.store(thread_id(), std::memory_order_relaxed);
  return crossbar.begin(r);
}

}  // namespace rankine
