// How data get from rank to rank.
//
// Three transports run the same program (engine/compile/program.h):
//   direct    everything stays where it is. A rank reads its peers' memory once their progress
//             counters say so; all waits are fixed here. For data of any size, at full speed.
//   mailbox   every source on another rank is a message of the pair's mailbox (mailbox.h): small
//             data inside the slot, large data as an address. Ports, clocks and throttling live
//             here, and a message from one to one is fastest here: data and flag share a line.
//   board     what others want of a rank in a round, it posts once for all of them (board.h). For
//             small data where everybody hears from everybody.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "engine/base/numbers.h"

namespace rankine {

enum class Transport : std::uint8_t { direct, mailbox, board };
inline constexpr int kTransports = 3;
std::string_view name_of(Transport transport);

// How to wait. Chosen once per communicator: see patience.h for the reasons.

struct WaitPolicy {
  enum class Mode : std::uint8_t { spin, yield, park };
  Mode mode = Mode::spin;            // what follows the first probes
  std::uint32_t probes = 64;         // before anything else
  std::int64_t yield_ns = 200'000;   // yield mode: before parking, after a few
  std::int64_t spin_ns = 1'000'000;  // spin mode: before parking
  // Whoever spins for longer gives its turn away now and then: a rank that is nowhere pinned may be
  // on the core that the one it waits for is to have.
  static constexpr std::int64_t kAloneNs = 50'000;
};
inline constexpr int kWaitModes = 3;

// What a rank that waits does at its next turn, between two looks at what it waits for: probe on,
// give its turn away, look whether anything else has happened, or sleep. One ladder for all who
// wait (wait.h, idling.h); numbers only, so that any clock will do.
//
//   every rank has a core of its own     spins with PAUSE for many futex round trips, giving turns
//                                        away now and then (WaitPolicy::kAloneNs), then sleeps
//   ranks outnumber cores                a few probes, some sched_yield, more of them for several
//                                        futex round trips, then sleeps
//
// A rank that sleeps comes late to the next call, by what waking costs: whoever spins or yields for
// less than that sleeps in turn, and so on for ever. Yields return at once where nobody else has
// work on the core, so their number alone would end the wait just when it costs nobody anything.
// The first few are not timed: where others have work each takes as long as they like.
//
// Spinning when oversubscribed was measured 2,500 times slower than yielding, sleeping without
// yields 20 to 40 times slower; a futex where everybody has a core costs 100 times the spin.

// One wait's, by a policy that lives as long. For one thread.
class Patience {
 public:
  enum class Turn : std::uint8_t {
    probe,  // pause_cpu()
    yield,  // yield_cpu()
    look,   // at the clock, for looked(), and at whatever else may have happened
    sleep,  // for good, or for a while
  };

  // `probed`: so many of the policy's probes have been made.
  explicit Patience(const WaitPolicy& policy, std::uint32_t probed = 0)
      : policy_(&policy), probes_(policy.probes - std::min(probed, policy.probes)) {}

  Turn next() noexcept {
    if (is_tired_) return Turn::sleep;
    if (turns_ == (yields() ? kYieldsPerLook : kPausesPerLook)) {
      turns_ = 0;
      return Turn::look;
    }
    ++turns_;
    if (probes_ > 0) {
      if (--probes_ == 0) turns_ = 0;
      return Turn::probe;
    }
    if (yields()) return Turn::yield;
    if (policy_->mode == WaitPolicy::Mode::spin)
      return is_alone_ || turns_ > 1 ? Turn::probe : Turn::yield;
    is_tired_ = true;
    return Turn::sleep;
  }

  // The time at a look, of any clock that does not begin at 0. The first one after the probes
  // begins what the policy times.
  void looked(std::int64_t now_ns) noexcept {
    if (probes_ > 0) return;
    if (begin_ns_ == 0) begin_ns_ = now_ns;
    is_alone_ = now_ns < deadline_after(begin_ns_, WaitPolicy::kAloneNs);
    is_tired_ =
        now_ns >= deadline_after(begin_ns_, yields() ? policy_->yield_ns : policy_->spin_ns);
  }

 private:
  static constexpr std::uint32_t kPausesPerLook = 100, kYieldsPerLook = 16;

  bool yields() const { return policy_->mode == WaitPolicy::Mode::yield; }

  const WaitPolicy* policy_;
  std::uint32_t probes_;       // that are left
  std::uint32_t turns_ = 0;    // since the last look
  std::int64_t begin_ns_ = 0;  // 0: none yet
  bool is_alone_ = true;       // on its core, as far as it knows
  bool is_tired_ = false;
};

}  // namespace rankine
