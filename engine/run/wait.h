// A rank waits here until another rank's word reaches a value. The wait ends the communicator if
// the peer is lost, calls something else or shares buffers, or if the deadline passes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "engine/base/numbers.h"
#include "engine/run/call_sites.h"
#include "engine/run/fingerprint.h"
#include "engine/run/rank_control.h"

namespace rankine {

struct WaitTarget;

// YieldCallback is the work that a rank does instead of a long wait.
class YieldCallback {
 public:
  virtual ~YieldCallback() = default;
  // A wait for `awaited` begins. WaitTarget::is_reached() tells if the rank can go on.
  virtual void wait_for(const WaitTarget&) noexcept {}
  // Called again and again, instead of spinning, yielding or sleeping, until the awaited word has
  // come. `turn` counts the calls of one wait, from 0. Returns soon; if there is no work, it lets
  // time pass.
  virtual void give_way(int turn) noexcept = 0;
};
using OtherWork [[deprecated("use YieldCallback")]] = YieldCallback;

// A wait spins or yields as the policy says (policy.h), then parks, with a deadline.
//
// A policy may ask for any numbers: an awake rank looks at its wake_futex and the clock now and
// then, so the deadline, an abort and a lost peer end every kind of wait.

// Waiter is one rank's view of its waits within one call.
struct Waiter {
  RankControl* rank_control = nullptr;
  Rank rank = 0;
  std::int64_t deadline_ns = 0;  // 0: not fixed yet; set by the first long wait of a call
  std::int64_t timeout_ns = 0;   // of this call; 0: the RankControl's
  std::uint64_t call = 0;        // number of the current call, as in CallRecord
  std::uint64_t behind = 0;      // 1: awaits publications of earlier calls
  std::uint64_t fingerprint = 0;
  BufferHashes buffer_hashes{};      // of this rank's buffers
  YieldCallback* others = nullptr;   // called instead of a long wait; nullptr: none
  const CallTimer* timer = nullptr;  // gets the times of waits; nullptr: not recorded

  // The time limit of the call.
  std::int64_t call_timeout_ns() const {
    return timeout_ns != 0 ? timeout_ns : rank_control->timeout_ns();
  }
  // The time when the call gives up. The first long wait that reads the clock fixes it.
  std::int64_t deadline(std::int64_t now) {
    if (deadline_ns == 0) deadline_ns = deadline_after(now, call_timeout_ns());
    return deadline_ns;
  }
};

// The first probes of a wait read nothing but the word. The engine chooses no policy with more of
// them; wait_long() makes the further probes of a policy.
inline constexpr std::uint32_t kBareProbes = 64;

// The slow path, after the first probes have failed. False: the communicator was aborted, perhaps
// by this wait because its deadline passed or the owner left.
bool wait_long(Waiter& waiter, const Atomic<std::uint32_t>& word, std::uint32_t value, Rank owner,
               int round) noexcept;

// The condition of a wait: `word`, written by `owner`, has reached `value`.
struct WaitTarget {
  const Atomic<std::uint32_t>* word = nullptr;  // nullptr: nothing
  std::uint32_t value = 0;
  Rank owner = 0;

  // Relaxed: the caller then checks once more with wait_until().
  bool is_reached() const noexcept {
    return word == nullptr || reached(word->load(std::memory_order_relaxed), value);
  }
};

// A value of `next_look_ns`: no look has been made, and the next one begins the wait's time.
inline constexpr std::int64_t kNextLookIsFirst = 1;
// The slow path of worth_waiting().
bool look_about(Waiter& waiter, const WaitTarget& awaited, int round,
                std::int64_t& next_look_ns) noexcept;

// For a rank that does other work while it waits and looks now and then: records that it waits in
// this round for `awaited`, which has not come. False, as in wait_long(): the communicator has
// ended. From `next_look_ns` on, it also checks the rare conditions (the clock, the state of the
// owner), and then moves `next_look_ns` on. It is 0 at first, and the first call checks nothing:
// most callers then begin a real wait.
inline bool worth_waiting(Waiter& waiter, const WaitTarget& awaited, int round,
                          std::int64_t& next_look_ns) noexcept {
  if (next_look_ns != 0) return look_about(waiter, awaited, round, next_look_ns);
  next_look_ns = kNextLookIsFirst;
  return true;
}
// The awaited word has come, after worth_waiting().
void has_come(Waiter& waiter) noexcept;

// Sets a function that the calling thread calls when it begins a long wait or plans a call, and
// then now and then while it waits, here or for the making of a communicator. If it returns
// non-zero, the wait and the communicator end. nullptr, the default: none. For languages that run
// signal handlers between two of their instructions and have a global lock, such as Python.
void set_interrupt_check(int (*check)()) noexcept;
// Calls that function; the next is_interrupted() returns its answer.
void begin_long_wait() noexcept;
// Calls that function, at most every look_about_ns() / 2.
bool is_interrupted() noexcept;
// The error text for Code::aborted then; `waiting` describes the wait.
std::string interrupted(const std::string& waiting);

// Ends the communicator because `peer` and `rank` make different calls: names field and values.
void report_mismatch(RankControl& rank_control, Rank rank, Rank peer,
                     std::uint64_t theirs) noexcept;

// Ends the communicator because `peer` and `rank` make the same call after different earlier calls.
void report_call_history_mismatch(RankControl& rank_control, Rank rank, Rank peer) noexcept;

// Waits until `word`, written by `owner`, has reached `value`. The owner's earlier writes are then
// visible. False: aborted.
inline bool wait_until(Waiter& waiter, const Atomic<std::uint32_t>& word, std::uint32_t value,
                       Rank owner, int round) noexcept {
  // Acquire: pairs with the owner's release store (publish, send, release of credits, entry).
  if (reached(word.load(std::memory_order_acquire), value)) [[likely]]
    return true;
  const std::uint32_t probes = std::min(waiter.rank_control->policy().probes, kBareProbes);
  for (std::uint32_t i = 0; i < probes; ++i) {
    pause_cpu();
    if (reached(word.load(std::memory_order_acquire), value)) return true;
  }
  return wait_long(waiter, word, value, owner, round);
}

// wait_until(), and then a comparison of the owner's call with ours. A different call ends the
// communicator. `theirs()` returns the owner's fingerprint and is called once the word has come.
template <class Fingerprint>
[[gnu::always_inline]] inline bool wait_for_call(Waiter& waiter, const Atomic<std::uint32_t>& word,
                                                 std::uint32_t value, Rank owner, int round,
                                                 const Fingerprint& theirs) noexcept {
  if (!wait_until(waiter, word, value, owner, round)) return false;
  const std::uint64_t print = theirs();
  if (print == waiter.fingerprint) [[likely]]
    return true;
  report_mismatch(*waiter.rank_control, waiter.rank, owner, print);
  return false;
}

// The owner of a counter stores its next value and wakes the ranks that wait for it.
inline void publish(RankControl& rank_control, RankLines& owners, Atomic<std::uint32_t>& word,
                    std::uint32_t value) noexcept {
  word.store(value, std::memory_order_release);  // pairs with wait_until()
  rank_control.announce(owners, word);
}
inline void publish(RankControl& rank_control, Rank owner, Atomic<std::uint32_t>& word,
                    std::uint32_t value) noexcept {
  publish(rank_control, rank_control.lines(owner), word, value);
}

}  // namespace rankine
