// Letting time pass between looks at several things that one waits for.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/run/machine.h"
#include "engine/run/patience.h"
#include "numa/cancel_state.h"

namespace rankine {

// How whoever has several things to wait for lets time pass: awake as its policy says, then in naps
// that grow.
class Idling {
 public:
  // `probed`: so many of the policy's probes have been made.
  explicit Idling(const WaitPolicy& policy, std::uint32_t probed = 0)
      : policy_(policy), patience_(policy, probed) {}

  // Whether so much time has passed that other things may be looked at: it has slept, or looked at
  // the clock.
  bool once() noexcept {
    switch (patience_.next()) {
      case Patience::Turn::probe:
        pause_cpu();
        return false;
      case Patience::Turn::yield:
        yield_cpu();
        return false;
      case Patience::Turn::look:
        patience_.looked(now_ns());
        return true;
      case Patience::Turn::sleep:
        break;
    }
    const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);
    sleep_ns(nap_ns_);
    nap_ns_ = std::min<std::int64_t>(2 * nap_ns_, kLongestNapNs);
    return true;
  }
  void begin_again() noexcept {
    patience_ = Patience(policy_);
    nap_ns_ = kFirstNapNs;
  }

 private:
  static constexpr std::int64_t kFirstNapNs = 20'000, kLongestNapNs = 1'000'000;

  const WaitPolicy& policy_;
  Patience patience_;
  std::int64_t nap_ns_ = kFirstNapNs;
};

}  // namespace rankine
