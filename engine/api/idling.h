// Letting time pass between looks at several things that one waits for.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/base/deadline.h"
#include "engine/run/machine.h"
#include "engine/run/wait_policy.h"
#include "numa/cancel_state.h"

namespace rankine {

// How whoever has several things to wait for lets time pass: awake as its policy says, then in naps
// that grow.
class Idling {
 public:
  explicit Idling(const WaitPolicy& policy) : policy_(policy) {}

  void once() noexcept {
    ++turns_;
    if (turns_ <= policy_.probes) return pause_cpu();
    if (policy_.mode == WaitPolicy::Mode::yield && yields()) return yield_cpu();
    if (policy_.mode == WaitPolicy::Mode::spin) {
      if (turns_ % kPausesPerLook != 0) return pause_cpu();
      const std::int64_t now = now_ns();
      if (begin_ns_ == 0) begin_ns_ = now;
      if (now < deadline_after(begin_ns_, WaitPolicy::kAloneNs)) return pause_cpu();
      if (now < deadline_after(begin_ns_, policy_.spin_ns)) return yield_cpu();
    }
    const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);
    sleep_ns(nap_ns_);
    nap_ns_ = std::min<std::int64_t>(2 * nap_ns_, kLongestNapNs);
  }
  void begin_again() noexcept {
    turns_ = 0;
    begin_ns_ = 0;
    nap_ns_ = kFirstNapNs;
    is_tired_ = false;
  }

 private:
  // Once tired it looks after each nap only.
  bool yields() noexcept {
    const std::uint32_t so_far = turns_ - policy_.probes;
    if (so_far <= policy_.yields) return true;
    if (is_tired_ || policy_.yield_ns == 0) return false;
    if (begin_ns_ != 0 && so_far % kYieldsPerLook != 0) return true;
    const std::int64_t now = now_ns();
    if (begin_ns_ == 0) begin_ns_ = now;
    is_tired_ = now >= deadline_after(begin_ns_, policy_.yield_ns);
    return !is_tired_;
  }

  static constexpr std::uint32_t kPausesPerLook = 64, kYieldsPerLook = 16;
  static constexpr std::int64_t kFirstNapNs = 20'000, kLongestNapNs = 1'000'000;

  const WaitPolicy& policy_;
  std::uint32_t turns_ = 0;
  std::int64_t begin_ns_ = 0;
  std::int64_t nap_ns_ = kFirstNapNs;
  bool is_tired_ = false;
};

}  // namespace rankine
