// What else there is to do for a rank that waits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "engine/base/numbers.h"
#include "engine/run/crossbar.h"
#include "engine/run/fingerprint.h"
#include "engine/run/plan.h"

namespace rankine {

struct Awaited;

class OtherWork {
 public:
  virtual ~OtherWork() = default;
  // A wait begins, for that. Who asks it (Awaited::is_there) knows whether the rank can go on.
  virtual void wait_for(const Awaited&) noexcept {}
  // Called where the rank would spin on, yield or sleep, again and again until what it waits for
  // has come: `turn` counts the calls of one wait, from 0. Returns soon, and lets time pass where
  // there is nothing to do.
  virtual void give_way(int turn) noexcept = 0;
};

// Waiting for a word of another rank's: awake as the policy says (patience.h), then parked, with a
// deadline.
//
// A policy may ask for any numbers: whoever waits awake looks at the bell and the clock now and
// then, so the deadline, an abort, and a peer that is lost end every kind of wait.

// Ranks compare what they call, always. Only bench/fingerprint compiles a copy of the interpreter
// that does not, to measure the price.
#ifdef RANKINE_BENCH_WITHOUT_FINGERPRINTS
inline constexpr bool kComparesCalls = false;
#else
inline constexpr bool kComparesCalls = true;
#endif

// One rank's view of its waiting within one call.
struct Waiter {
  Crossbar* crossbar = nullptr;
  Rank rank = 0;
  std::int64_t deadline_ns = 0;  // 0: not fixed yet; set by the first long wait of a call
  std::int64_t timeout_ns = 0;   // of this call; 0: the crossbar's
  std::uint64_t call = 0;        // the call that we are in, as in CallRecord
  std::uint64_t fingerprint = 0;
  Marks marks{};                // of our buffers
  OtherWork* others = nullptr;  // given way to instead of a long wait; nullptr: none

  // How long the call may take.
  std::int64_t call_timeout_ns() const {
    return timeout_ns != 0 ? timeout_ns : crossbar->timeout_ns();
  }
  // When the call gives up: fixed by the first long wait that looks at the clock.
  std::int64_t deadline(std::int64_t now) {
    if (deadline_ns == 0) deadline_ns = deadline_after(now, call_timeout_ns());
    return deadline_ns;
  }
};

// The first probes of a wait look at nothing but the word. No policy that the engine chooses has
// more of them; what a policy asks for beyond is probed in wait_long().
inline constexpr std::uint32_t kBareProbes = 64;

// The slow path: after the first probes have failed. False: the communicator was aborted (by this
// wait itself where its deadline passed or its owner left).
bool wait_long(Waiter& waiter, const Atomic<std::uint32_t>& word, std::uint32_t value, Rank owner,
               int round) noexcept;

// What a wait is for: until `word`, written by `owner`, has reached `value`.
struct Awaited {
  const Atomic<std::uint32_t>* word = nullptr;  // nullptr: nothing
  std::uint32_t value = 0;
  Rank owner = 0;

  // Relaxed: whoever goes on looks once more, with wait_until().
  bool is_there() const noexcept {
    return word == nullptr || reached(word->load(std::memory_order_relaxed), value);
  }
};

// Of `next_look_ns`: nothing has been looked at, and the next look begins the wait's time.
inline constexpr std::int64_t kNextLookIsFirst = 1;
// The slow path of worth_waiting().
bool look_about(Waiter& waiter, const Awaited& awaited, int round,
                std::int64_t& next_look_ns) noexcept;

// For a rank that has other things to do than to wait, and looks now and then: that it waits in
// this round for something that is not there yet. False, as wait_long(): all is over. The rare
// things (the clock, and what became of the owner) are looked at from `next_look_ns` on, which is
// then moved on. 0 at first, when nobody looks at anything: most wait in earnest next.
inline bool worth_waiting(Waiter& waiter, const Awaited& awaited, int round,
                          std::int64_t& next_look_ns) noexcept {
  if (next_look_ns != 0) return look_about(waiter, awaited, round, next_look_ns);
  next_look_ns = kNextLookIsFirst;
  return true;
}
// It has come, after that.
void has_come(Waiter& waiter) noexcept;

// A function that the calling thread asks now and then while it waits, here or for a communicator
// to be made; not 0: the wait ends, and the communicator with it. nullptr: none, as at first. For
// languages whose signal handlers run between two instructions of theirs, such as Python.
void set_interrupt_check(int (*check)()) noexcept;
// Asks it, but not more often than every look_about_ns() / 2.
bool is_interrupted() noexcept;
// The text of the error (Code::aborted) then: what was waited for.
std::string interrupted(const std::string& waiting);

// Ends the communicator because `peer` calls something else than `rank`: names field and values.
void report_mismatch(Crossbar& crossbar, Rank rank, Rank peer, std::uint64_t theirs) noexcept;

// Ends the communicator because `peer` makes the same call as `rank`, but made another one before.
void report_other_way(Crossbar& crossbar, Rank rank, Rank peer) noexcept;

// Until `word`, written by `owner`, has reached `value`. What the owner wrote before is visible
// then. False: aborted.
inline bool wait_until(Waiter& waiter, const Atomic<std::uint32_t>& word, std::uint32_t value,
                       Rank owner, int round) noexcept {
  // Acquire: pairs with the owner's release store (publish, send, release of credits, entry).
  if (reached(word.load(std::memory_order_acquire), value)) [[likely]]
    return true;
  const std::uint32_t probes = std::min(waiter.crossbar->policy().probes, kBareProbes);
  for (std::uint32_t i = 0; i < probes; ++i) {
    pause_cpu();
    if (reached(word.load(std::memory_order_acquire), value)) return true;
  }
  return wait_long(waiter, word, value, owner, round);
}

// The same, and what the owner says with the word that it calls: where that is not our call, the
// communicator ends here. `theirs()` is asked once the word is there.
template <class Fingerprint>
[[gnu::always_inline]] inline bool wait_for_call(Waiter& waiter, const Atomic<std::uint32_t>& word,
                                                 std::uint32_t value, Rank owner, int round,
                                                 const Fingerprint& theirs) noexcept {
  if (!wait_until(waiter, word, value, owner, round)) return false;
  const std::uint64_t print = theirs();
  if (!kComparesCalls || print == waiter.fingerprint) [[likely]]
    return true;
  report_mismatch(*waiter.crossbar, waiter.rank, owner, print);
  return false;
}

// The owner of a counter that others wait for moves it on.
inline void publish(Crossbar& crossbar, Rank owner, Atomic<std::uint32_t>& word,
                    std::uint32_t value) noexcept {
  word.store(value, std::memory_order_release);  // pairs with wait_until()
  crossbar.announce(owner, word);
}

// Finding out that two ranks share buffers (rank_buffers.h), before their data are used. What is
// seen when stands in member.h; this is where it is seen:
//
//   direct           every rank compares the addresses in the entries of those whose memory it uses
//   mailbox, board   the mark in the first message from a rank, or in each post: equal addresses
//   any              the first call of its kind: everybody's addresses, whoever hears from whom

// Tells where a rank's buffers for the call are that it has announced and not yet begun.
inline void offer_buffers(const Waiter& waiter, std::byte* in, std::byte* out) noexcept {
  Entry::Buffers& mine = waiter.crossbar->entry(waiter.rank).of(waiter.call);
  // Release: pairs with keeps_apart(), which finds the announcement where it finds these.
  mine.input.store(in, std::memory_order_release);
  mine.output.store(out, std::memory_order_release);
}

// Ends the communicator because these two share.
void report_sharing(Crossbar& crossbar, Rank rank, const RankBuffers& mine, Rank peer,
                    const RankBuffers& theirs) noexcept;

// For a rank inside a call that has heard from that one: whether both bring what they may. True as
// well where the peer has left the call and may have done so before we came, or has gone on
// further: its memory may have been given to somebody else. False: they share, and the communicator
// has ended.
bool keeps_apart(const Plan& plan, const Waiter& waiter, Rank peer) noexcept;

// For a rank that has begun a call: the same of all ranks that have begun it, too. Where two that
// share both ask, one of them at least is told.
bool all_keep_apart(const Plan& plan, const Waiter& waiter) noexcept;

}  // namespace rankine
