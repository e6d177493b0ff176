// Enforcement is the outcome of a request that the machine may refuse (pinning, memory binding,
// huge pages). This header also has a scope that disables thread cancellation, and warnings that
// appear once per process.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <string_view>
#include <type_traits>

namespace rankine {

// Plain data without heap memory, so that it can be filled in when memory is short.
struct Enforcement {
  enum class State { not_asked, enforced, refused };

  State state = State::not_asked;
  int error = 0;                   // errno of the refusal; 0 if no system call was the reason
  std::array<char, 160> reason{};  // reason of a refusal, one line, truncated; otherwise empty

  bool enforced() const { return state == State::enforced; }
  bool refused() const { return state == State::refused; }
  std::string_view why() const { return reason.data(); }

  // Combines results over several ranges of one request: a refusal stays, since one misplaced range
  // is misplaced memory.
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

// Controls if pthread_cancel may end the calling thread.

// Sets PTHREAD_CANCEL_DISABLE or _ENABLE for its lifetime, then restores the old state. A request
// that comes while cancellation is disabled takes effect at a later cancellation point.
//
// Disable cancellation around libc calls that may block (sleeping, waiting, writing) if a
// cancellation's unwinding cannot pass: in a function that must not throw, in a destructor, and in
// a function that waits for threads that use its locals. For the deferred type, the default: no
// code here is safe under asynchronous cancellation, as hardly any code is.
class ScopedCancelState {
 public:
  explicit ScopedCancelState(int state) noexcept { pthread_setcancelstate(state, &before_); }
  ~ScopedCancelState() { pthread_setcancelstate(before_, nullptr); }
  ScopedCancelState(const ScopedCancelState&) = delete;
  ScopedCancelState& operator=(const ScopedCancelState&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

// Warnings of a library without a logger: one line per cause, once per process.

// Receives each warning once. `key` names the cause ("numa.mbind"), `text` is one line without its
// end. Called under this file's lock: calls never overlap, and the sink must not call warn_once.
// Exceptions of the sink are dropped.
using WarningSink = std::function<void(std::string_view key, std::string_view text)>;

// Passes `text` to the sink at the first use of `key` in this process; later calls do nothing. Line
// breaks in `text` become spaces. Thread-safe. Never throws: if memory is short, the warning is
// dropped.
void warn_once(std::string_view key, std::string_view text) noexcept;

// Replaces the sink and returns the old one; an empty sink restores the default, which writes
// "rankine: warning: <text>\n" to stderr in one write. Thread-safe; after the return the old sink
// is not called any more.
WarningSink set_warning_sink(WarningSink sink);

// Forgets all keys, so that the next warning of each appears again. For tests.
void forget_warnings() noexcept;

}  // namespace rankine
