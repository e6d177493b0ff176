#include "engine/exec/wait.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "engine/exec/fingerprint.h"

namespace rankine {
namespace {

// Adds a rank to the owner's parked count for as long as it lives.
class Parking {
 public:
  Parking(Crossbar& crossbar, Rank rank, Rank owner, const std::atomic<std::uint32_t>& word)
      : bell_(crossbar.bell(rank)), count_(crossbar.parked(owner).count) {
    // Release: whoever sees the count (or the bell rung by abort) finds the word.
    bell_.parked_on.store(&word, std::memory_order_release);
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
  std::atomic<std::uint32_t>& count_;
};

constexpr std::uint32_t kAbortBit = 1;

// A parked rank looks about at least this often: nobody rings when a peer enters another
// collective.
constexpr std::int64_t kLookAboutNs = 50'000'000;

// The peer is in the same call of ours by number and calls something else.
bool disagrees(Crossbar& crossbar, const Waiter& waiter, Rank peer) {
  CallRecord& record = crossbar.record(peer);
  if (record.number.load(std::memory_order_acquire) != waiter.call) return false;
  const Fingerprint theirs{record.fingerprint.load(std::memory_order_relaxed)};
  const Fingerprint ours{waiter.fingerprint};
  return theirs.call() == ours.call() && theirs != ours;  // else it is just moving on
}

}  // namespace

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

bool membarrier_available() {
  static const bool available = [] {
    const long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    return commands > 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
           syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  }();
  return available;
}

void barrier_everywhere() { syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0); }

int thread_id() {
  thread_local const int id = static_cast<int>(syscall(SYS_gettid));
  return id;
}

bool thread_has_ended(int id) {
  return id != 0 && syscall(SYS_tgkill, getpid(), id, 0) != 0 && errno == ESRCH;
}

void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t seen, std::int64_t until_ns) {
  const timespec until{until_ns / 1'000'000'000, until_ns % 1'000'000'000};
  // WAIT_BITSET takes an absolute time of the monotonic clock. Any return is a reason to look
  // again.
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, seen, &until, nullptr,
          FUTEX_BITSET_MATCH_ANY);
}

void futex_wake_all(const std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 0x7fffffff, nullptr, nullptr, 0);
}

void report_mismatch(Crossbar& crossbar, Rank rank, Rank peer, std::uint64_t theirs) noexcept {
  const CallRecord& mine = crossbar.record(rank);
  const CallRecord& other = crossbar.record(peer);
  crossbar.abort({Code::mismatch,
                  difference(Fingerprint{mine.fingerprint.load(std::memory_order_relaxed)}, rank,
                             mine.count.load(std::memory_order_relaxed), Fingerprint{theirs}, peer,
                             other.count.load(std::memory_order_relaxed))});
}

bool wait_long(Waiter& waiter, const std::atomic<std::uint32_t>& word, std::uint32_t value,
               Rank owner, int round) noexcept {
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
      sched_yield();
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
    const CallRecord& theirs = crossbar.record(owner);
    if (theirs.inside.load(std::memory_order_relaxed) &&
        thread_has_ended(theirs.thread.load(std::memory_order_relaxed)) && !done()) {
      crossbar.abort({Code::rank_lost, "rank " + std::to_string(owner) + " is still needed: " +
                                           crossbar.who_waits_for_whom(waiter.rank)});
      return false;
    }
    if (disagrees(crossbar, waiter, owner)) {
      report_mismatch(crossbar, waiter.rank, owner, crossbar.record(owner).fingerprint.load());
      return false;
    }
    const std::int64_t now = now_ns();
    if (now >= waiter.deadline_ns) {
      crossbar.abort({Code::timeout, "no answer within " +
                                         std::to_string(timeout_ns / 1'000'000) +
                                         " ms: " + crossbar.who_waits_for_whom(waiter.rank)});
      return false;
    }
    futex_wait(bell.word, rung, std::min(waiter.deadline_ns, now + kLookAboutNs));
  }
  bell.waits_for.store(-1, std::memory_order_relaxed);
  return true;
}

}  // namespace rankine
