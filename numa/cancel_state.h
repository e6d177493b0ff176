// Whether pthread_cancel may end the calling thread.
#pragma once

#include <pthread.h>

namespace rankine {

// PTHREAD_CANCEL_DISABLE or _ENABLE for as long as it lives, then what was before. A request that
// comes while it is disabled waits, and takes effect at a cancellation point afterwards.
//
// Disabled around what may block in libc (sleeping, waiting, writing) where the unwinding that a
// cancellation is cannot pass: a function that may not throw, a destructor, and whoever waits for
// threads that use its locals. For the deferred type, which is the default: nothing here is safe to
// be cancelled asynchronously, as hardly anything is.
class ScopedCancelState {
 public:
  explicit ScopedCancelState(int state) noexcept { pthread_setcancelstate(state, &before_); }
  ~ScopedCancelState() { pthread_setcancelstate(before_, nullptr); }
  ScopedCancelState(const ScopedCancelState&) = delete;
  ScopedCancelState& operator=(const ScopedCancelState&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace rankine
