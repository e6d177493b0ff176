// A transport says how data move between ranks, and a wait policy says how a rank waits.
//
// Three transports run the same program (engine/compile/program.h):
//
//   direct    data stay in place. A rank reads its peers' memory once their progress counters allow
//             it; the plan fixes all waits. For data of any size, at full speed.
//   mailbox   every source on another rank is a message of the pair's mailbox (mailbox.h): small
//             data in the slot, large data as an address. Ports, clocks and throttling need this
//             transport. It is fastest for a single message: data and flag share a line.
//   board     a rank posts its data of a round once for all readers (mailbox.h). For small data
//             that every rank reads from every rank.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/base/numbers.h"

namespace rankine {

enum class Transport : std::uint8_t { direct, mailbox, board };
inline constexpr int kTransports = 3;
std::string_view name_of(Transport transport);

// How data reach another rank: posted in a board, a mailbox or, by processes, in scratch; read
// where they are; stored in the other rank's output, by plain stores or by stores that take over
// lines unread; stored there past the caches; staged past the caches, in scratch that the others
// read.
enum class Form : std::uint8_t { posts, reads, stores, claims, streams, stages };
inline constexpr std::size_t kForms = 6;
// True if ranks store in others' outputs.
constexpr bool stores_results(Form form) { return Form::stores <= form && form <= Form::streams; }
constexpr std::string_view name_of(Form form) {
  constexpr std::string_view kNames[] = {"posts", "reads", "stores", "claims", "streams", "stages"};
  return kNames[static_cast<std::size_t>(form)];
}

// The way to wait. Chosen once per communicator; SpinBudget below gives the reasons.

struct WaitPolicy {
  enum class Mode : std::uint8_t { spin, yield, park };
  Mode mode = Mode::spin;            // the action after the first probes
  std::uint32_t probes = 64;         // before anything else
  std::int64_t yield_ns = 200'000;   // yield mode: time before parking, after the first few yields
  std::int64_t spin_ns = 1'000'000;  // spin mode: time before parking
  // A rank that spins longer than this yields now and then: an unpinned rank may occupy the core
  // that the rank it waits for needs.
  static constexpr std::int64_t kAloneNs = 50'000;
};
inline constexpr int kWaitModes = 3;

// SpinBudget gives the next action of a waiting rank between two looks at its word: probe again,
// yield, check for other events, or sleep. All waits share this one ladder (wait.h, threads.h). It
// uses numbers only, so any clock fits.
//
//   every rank has its own core          spins with PAUSE for many futex round trips, yielding now
//                                        and then (WaitPolicy::kAloneNs), then sleeps
//   ranks outnumber cores                a few probes, some sched_yield, more of them for several
//                                        futex round trips, then sleeps
//
// A rank that sleeps is late for the next call by the cost of waking: a peer that spins or yields
// for less than that then sleeps too, and so on. A yield returns at once if no other thread has
// work on the core, so a bare number of yields would end the wait just when waiting is free. The
// first few yields are not timed: if other threads have work, each yield takes as long as they
// like.
//
// Measured: spinning when oversubscribed is 2,500 times slower than yielding; sleeping without
// yields is 20 to 40 times slower; a futex with a core per rank costs 100 times the spin.

// The ladder of one wait. The policy must live as long. For one thread.
class SpinBudget {
 public:
  enum class Turn : std::uint8_t {
    probe,  // pause_cpu()
    yield,  // yield_cpu()
    look,   // read the clock for looked(), and check for other events
    sleep,  // for good, or for a while
  };

  // `probed`: the number of the policy's probes already made.
  explicit SpinBudget(const WaitPolicy& policy, std::uint32_t probed = 0)
      : policy_(&policy), probes_(policy.probes - std::min(probed, policy.probes)) {}

  Turn next() noexcept {
    if (is_spent_) return Turn::sleep;
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
    is_spent_ = true;
    return Turn::sleep;
  }

  // Gives the time at a look, of any clock that does not begin at 0. The first look after the
  // probes begins the policy's time.
  void looked(std::int64_t now_ns) noexcept {
    if (probes_ > 0) return;
    if (begin_ns_ == 0) begin_ns_ = now_ns;
    is_alone_ = now_ns < deadline_after(begin_ns_, WaitPolicy::kAloneNs);
    is_spent_ =
        now_ns >= deadline_after(begin_ns_, yields() ? policy_->yield_ns : policy_->spin_ns);
  }

 private:
  static constexpr std::uint32_t kPausesPerLook = 100, kYieldsPerLook = 16;

  bool yields() const { return policy_->mode == WaitPolicy::Mode::yield; }

  const WaitPolicy* policy_;
  std::uint32_t probes_;       // probes left
  std::uint32_t turns_ = 0;    // since the last look
  std::int64_t begin_ns_ = 0;  // 0: none yet
  bool is_alone_ = true;       // on its core, as far as it knows
  bool is_spent_ = false;
};

}  // namespace rankine
