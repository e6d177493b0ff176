#include "engine/exec/wait.h"

#include <algorithm>
#include <optional>
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

// How many calls the peer is further than we. What it published before it began the last of them is
// visible then.
std::int64_t calls_ahead(Crossbar& crossbar, const Waiter& waiter, Rank peer) {
  return static_cast<std::int64_t>(
      crossbar.record(peer).number.load(std::memory_order_acquire) -  // pairs with announce()
      waiter.call);
}

// What the peer calls, or called, under our call's number, where that is something else than ours.
std::optional<std::uint64_t> disagreement(Crossbar& crossbar, const Waiter& waiter, Rank peer) {
  const Fingerprint theirs{
      crossbar.record(peer).of(waiter.call).fingerprint.load(std::memory_order_relaxed)};
  const Fingerprint ours{waiter.fingerprint};
  if (theirs.call() != ours.call() || theirs == ours) return std::nullopt;
  return theirs.bits;
}

void report_gone_on(Crossbar& crossbar, const Waiter& waiter, Rank peer, int round) noexcept {
  crossbar.abort(make_error(Code::mismatch, [&] {
    const auto number = crossbar.record(peer).number.load(std::memory_order_relaxed);
    return "rank " + std::to_string(peer) + " has gone on to " +
           crossbar.describe_call(peer, number) + ", without what rank " +
           std::to_string(waiter.rank) + " waits for in round " + std::to_string(round) + " of " +
           crossbar.describe_call(waiter.rank, waiter.call);
  }));
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
  crossbar.abort(make_error(Code::mismatch, [&] {
    CallRecord& record = crossbar.record(rank);
    const CallRecord::What& mine = record.of(record.number.load(std::memory_order_relaxed));
    const Fingerprint other{theirs};
    // All that we know of the number of that call is its lowest bits, and it takes no more.
    const auto number = static_cast<std::uint64_t>(other.call());
    return difference(Fingerprint{mine.fingerprint.load(std::memory_order_relaxed)}, rank,
                      mine.count.load(std::memory_order_relaxed), other, peer,
                      crossbar.record(peer).of(number).count.load(std::memory_order_relaxed));
  }));
}

void report_other_way(Crossbar& crossbar, Rank rank, Rank peer) noexcept {
  crossbar.abort(make_error(Code::mismatch, [&] {
    return "rank " + std::to_string(rank) + " and rank " + std::to_string(peer) +
           " make the same call, but made different ones before";
  }));
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
  const std::int64_t begin_ns = now_ns();
  const std::int64_t deadline_ns = waiter.deadline(begin_ns);
  SlowWaits& slow_waits = crossbar.slow_waits(waiter.rank);
  slow_waits.begin(waiter.call, owner, round, begin_ns);
  const auto end_with = [&](SlowWait::End how, Code code, const auto& text) {
    slow_waits.end(how, now_ns());
    crossbar.abort(make_error(code, text));
    return false;
  };
  const Parking parking(crossbar, waiter.rank, owner, word);
  for (;;) {
    // The bell is read before the word: a ring that comes after this look changes it, and the
    // kernel will not let us sleep.
    const std::uint32_t rung = bell.word.load(std::memory_order_acquire);
    if (done()) break;
    if ((rung & kAbortBit) != 0) {
      slow_waits.end(SlowWait::End::aborted, now_ns());
      return false;
    }
    // Acquire: pairs with leave(); what the owner published before it left is visible.
    if (crossbar.bell(owner).left.load(std::memory_order_acquire) && !done()) {
      return end_with(SlowWait::End::lost, Code::rank_lost, [&] {
        return "rank " + std::to_string(owner) +
               " has left and is still needed: " + crossbar.who_waits_for_whom(waiter.rank);
      });
    }
    // A thread that has ended inside a call told nobody.
    if (ended_inside_a_call(crossbar.record(owner)) && !done()) {
      return end_with(SlowWait::End::lost, Code::rank_lost, [&] {
        return "rank " + std::to_string(owner) +
               " is still needed: " + crossbar.who_waits_for_whom(waiter.rank);
      });
    }
    // A peer that has done with the call of our number has published all that we wait for in it,
    // unless that was another call. One that is still in it shows by its fingerprint.
    if (const std::int64_t ahead = calls_ahead(crossbar, waiter, owner); ahead >= 0) {
      const auto theirs = disagreement(crossbar, waiter, owner);
      if (theirs || (ahead > 0 && !done())) {
        slow_waits.end(SlowWait::End::mismatch, now_ns());
        if (theirs) {
          report_mismatch(crossbar, waiter.rank, owner, *theirs);
        } else {
          report_gone_on(crossbar, waiter, owner, round);
        }
        return false;
      }
    }
    const std::int64_t now = now_ns();
    if (now >= deadline_ns) {
      return end_with(SlowWait::End::deadline, Code::timeout, [&] {
        return "no answer within " + std::to_string(waiter.patience_ns() / 1'000'000) +
               " ms: " + crossbar.who_waits_for_whom(waiter.rank);
      });
    }
    futex_wait(bell.word, rung, std::min(deadline_ns, now + look_about_ns()));
  }
  slow_waits.end(SlowWait::End::came, now_ns());
  bell.waits_for.store(-1, std::memory_order_relaxed);
  return true;
}

}  // namespace rankine
