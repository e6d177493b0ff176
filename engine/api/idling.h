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
  explicit Idling(const WaitPolicy& policy) : policy_(policy) {}

  void once() noexcept {
    switch (patience_.next()) {
      case Patience::Turn::probe:
        return pause_cpu();
      case Patience::Turn::yield:
        return yield_cpu();
      case Patience::Turn::look:
        return patience_.looked(now_ns());
      case Patience::Turn::sleep:
        break;
    }
    const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);
    sleep_ns(nap_ns_);
    nap_ns_ = std::min<std::int64_t>(2 * nap_ns_, kLongestNapNs);
  }
  void begin_again() noexcept {
    patience_ = Patience(policy_);
    nap_ns_ = kFirstNapNs;
  }

 private:
  static constexpr std::int64_t kFirstNapNs = 20'000, kLongestNapNs = 1'000'000;

  const WaitPolicy& policy_;
  Patience patience_{policy_};
  std::int64_t nap_ns_ = kFirstNapNs;
};

}  // namespace rankine
