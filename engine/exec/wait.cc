#include "engine/exec/wait.h"

#include <algorithm>
#include <string>

#include "engine/exec/fingerprint.h"

namespace rankine {
namespace {

// Adds a rank to the owner's parked count for as long as it lives.
class Parking {
 public:
  Parking(Crossbar& crossbar, Rank rank, Rank owner, const Atomic<std::uint32_t>& word)
      : bell_(crossbar.bell(rank)), count_(crossbar.parked(owner).count) {
    // Found by whoever sees the count, which comes next.
    bell_.parked_on.store(&word, std::memory_order_relaxed);
    // Strict mode: pairs with announce()'s fetch_add; whichever comes later sees the other's store.
    count_.fetch_add(1, std::memory_order_acq_rel);
    // Otherwise: pairs with announce()'s plain store and load.
    if (!crossbar.strict()) barrier_everywhere();
  }
  ~Parking() {
    bell_.parked_on.store(nullptr, std::memory_order_relaxed);
    count_.fetch_sub(1, std::memory_order_relaxed);
  }
  Parking(const Parking&) = delete;
  Parking& operator=(const Parking&) = delete;

 private:
  Bell& bell_;
  Atomic<std::uint32_t>& count_;
};

constexpr std::uint32_t kAbortBit = 1;

// The peer is in the same call of ours by number and calls something else.
bool disagrees(Crossbar& crossbar, const Waiter& waiter, Rank peer) {
  CallRecord& record = crossbar.record(peer);
  if (record.number.load(std::memory_order_acquire) != waiter.call) return false;
  const Fingerprint theirs{record.fingerprint.load(std::memory_order_relaxed)};
  const Fingerprint ours{waiter.fingerprint};
  return theirs.call() == ours.call() && theirs != ours;  // else it is just moving on
}

// The thread that made the rank's last call has ended before that call did.
bool ended_inside_a_call(const CallRecord& record) {
  const auto number = record.number.load(std::memory_order_relaxed);
  if (!record.inside.load(std::memory_order_relaxed) ||
      !thread_has_ended(record.thread.load(std::memory_order_relaxed))) {
    return false;
  }
  // Not one that came out of it while we looked, nor one that went on with another thread: what a
  // thread stored is visible once the kernel says that it has ended. Relaxed: x86 keeps the order
  // of a new call's number and `inside`.
  return record.inside.load(std::memory_order_relaxed) &&
         record.number.load(std::memory_order_relaxed) == number;
}

}  // namespace

void report_mismatch(Crossbar& crossbar, Rank rank, Rank peer, std::uint64_t theirs) noexcept {
  const CallRecord& mine = crossbar.record(rank);
  const CallRecord& other = crossbar.record(peer);
  crossbar.abort({Code::mismatch,
                  difference(Fingerprint{mine.fingerprint.load(std::memory_order_relaxed)}, rank,
                             mine.count.load(std::memory_order_relaxed), Fingerprint{theirs}, peer,
                             other.count.load(std::memory_order_relaxed))});
}

void report_other_way(Crossbar& crossbar, Rank rank, Rank peer) noexcept {
  crossbar.abort({Code::mismatch, "rank " + std::to_string(rank) + " and rank " +
                                      std::to_string(peer) +
                                      " make the same call, but made different ones before"});
}

bool wait_long(Waiter& waiter, const Atomic<std::uint32_t>& word, std::uint32_t value, Rank owner,
               int round) noexcept {
  Crossbar& crossbar = *waiter.crossbar;
  const WaitPolicy& policy = crossbar.policy();
  Bell& bell = crossbar.bell(waiter.rank);
  const auto done = [&] {
    return reached(word.load(std::memory_order_acquire), value);  // pairs as in wait_until()
  };
  const auto is_aborted = [&] {
    // Acquire: pairs with abort()'s release fetch_or, so that the reason can be read.
    return (bell.word.load(std::memory_order_acquire) & kAbortBit) != 0;
  };

  if (policy.mode == WaitPolicy::Mode::yield) {
    for (std::uint32_t i = 0; i < policy.yields; ++i) {
      yield_cpu();
      if (done()) return true;
    }
  } else if (policy.mode == WaitPolicy::Mode::spin) {
    const std::int64_t spin_until = now_ns() + policy.spin_ns;
    do {
      for (int i = 0; i < 100; ++i) {
        pause_cpu();
        if (done()) return true;
      }
      if (is_aborted()) return false;
    } while (now_ns() < spin_until);
  }

  bell.waits_in_round.store(round, std::memory_order_relaxed);
  bell.waits_for.store(owner, std::memory_order_relaxed);
  const std::int64_t timeout_ns =
      waiter.timeout_ns != 0 ? waiter.timeout_ns : crossbar.timeout_ns();
  if (waiter.deadline_ns == 0) waiter.deadline_ns = now_ns() + timeout_ns;
  const Parking parking(crossbar, waiter.rank, owner, word);
  for (;;) {
    // The bell is read before the word: a ring that comes after this look changes it, and the
    // kernel will not let us sleep.
    const std::uint32_t rung = bell.word.load(std::memory_order_acquire);
    if (done()) break;
    if ((rung & kAbortBit) != 0) return false;
    // Acquire: pairs with leave(); what the owner published before it left is visible.
    if (crossbar.bell(owner).left.load(std::memory_order_acquire) && !done()) {
      crossbar.abort({Code::rank_lost, "rank " + std::to_string(owner) +
                                           " has left and is still needed: " +
                                           crossbar.who_waits_for_whom(waiter.rank)});
      return false;
    }
    // A thread that has ended inside a call told nobody.
    if (ended_inside_a_call(crossbar.record(owner)) && !done()) {
      crossbar.abort({Code::rank_lost, "rank " + std::to_string(owner) + " is still needed: " +
                                           crossbar.who_waits_for_whom(waiter.rank)});
      return false;
    }
    if (disagrees(crossbar, waiter, owner)) {
      report_mismatch(crossbar, waiter.rank, owner,
                      crossbar.record(owner).fingerprint.load(std::memory_order_relaxed));
      return false;
    }
    const std::int64_t now = now_ns();
    if (now >= waiter.deadline_ns) {
      crossbar.abort({Code::timeout, "no answer within " + std::to_string(timeout_ns / 1'000'000) +
                                         " ms: " + crossbar.who_waits_for_whom(waiter.rank)});
      return false;
    }
    futex_wait(bell.word, rung, std::min(waiter.deadline_ns, now + look_about_ns()));
  }
  bell.waits_for.store(-1, std::memory_order_relaxed);
  return true;
}

}  // namespace rankine
