// What came of a wish that the machine may refuse: pinning, memory binding, huge pages.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <string_view>
#include <type_traits>

namespace rankine {

// Plain data without heap memory, so that it can be filled in when memory is what is missing.
struct Enforcement {
  enum class State { not_asked, enforced, refused };

  State state = State::not_asked;
  int error = 0;                   // errno of the refusal; 0 where no system call was the reason
  std::array<char, 160> reason{};  // why it was refused, one line, cut where too long; else empty

  bool enforced() const { return state == State::enforced; }
  bool refused() const { return state == State::refused; }
  std::string_view why() const { return reason.data(); }

  // One wish over several ranges: a refusal stays, since one range out of place is memory out of
  // place.
  void add(const Enforcement& one) {
    if (!refused() && one.state != State::not_asked) *this = one;
  }

  static Enforcement done() {
    Enforcement result;
    result.state = State::enforced;
    return result;
  }

  static Enforcement refusal(int error, std::string_view why) {
    Enforcement result;
    result.state = State::refused;
    result.error = error;
    const std::size_t length = std::min(why.size(), result.reason.size() - 1);
    std::copy_n(why.data(), length, result.reason.data());
    return result;
  }
};

static_assert(std::is_trivially_copyable_v<Enforcement>);

// Whether pthread_cancel may end the calling thread.

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

// Warnings of a library that owns no logger: one line per cause, once per process.

// Receives each warning once. `key` names the cause ("numa.mbind"), `text` is one line without its
// end. Called under the lock of this file: it is never called twice at a time, and must not call
// warn_once itself. What it throws is dropped.
using WarningSink = std::function<void(std::string_view key, std::string_view text)>;

// Passes `text` to the sink the first time that `key` is seen in this process; later calls do
// nothing. Line breaks in `text` become spaces. Thread-safe. Never throws: when memory is short the
// warning is dropped.
void warn_once(std::string_view key, std::string_view text) noexcept;

// Replaces the sink and returns the one before; an empty sink brings back the default, which writes
// "rankine: warning: <text>\n" to stderr in one write. Thread-safe; once this has returned, the old
// sink is not called any more.
WarningSink set_warning_sink(WarningSink sink);

// Forgets which keys have been seen, so that the next warning of each is heard again. For tests.
void forget_warnings() noexcept;

}  // namespace rankine
