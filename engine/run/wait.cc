#include "engine/run/wait.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "engine/base/status.h"
#include "engine/run/fingerprint.h"
#include "engine/run/policy.h"

namespace rankine {
namespace {

// Parking keeps a rank in the owner's parked count for its lifetime.
class Parking {
 public:
  Parking(RankControl& rank_control, Rank rank, Rank owner, const Atomic<std::uint32_t>& word)
      : wake_futex_(rank_control.wake_futex(rank)), count_(rank_control.parked(owner).count) {
    // A thread that sees the count, incremented next, finds this.
    wake_futex_.parked_on.store(&word, std::memory_order_relaxed);
    // Strict mode: pairs with announce()'s fetch_add; the later one sees the other's store.
    count_.fetch_add(1, std::memory_order_acq_rel);
    // Otherwise: pairs with announce()'s plain store and load.
    if (!rank_control.strict()) barrier_everywhere(rank_control.threads());
  }
  ~Parking() {
    wake_futex_.parked_on.store(nullptr, std::memory_order_relaxed);
    count_.fetch_sub(1, std::memory_order_relaxed);
  }
  Parking(const Parking&) = delete;
  Parking& operator=(const Parking&) = delete;

 private:
  WakeFutex& wake_futex_;
  Atomic<std::uint32_t>& count_;
};

constexpr std::uint32_t kAbortBit = 1;

// The number of calls that the peer is ahead of the call with the awaited data. Its publications
// before its last call are visible then.
std::int64_t calls_ahead(RankControl& rank_control, const Waiter& waiter, Rank peer) {
  return static_cast<std::int64_t>(
      rank_control.record(peer).number.load(std::memory_order_acquire) -  // pairs with announce()
      (waiter.call - waiter.behind));
}

// The peer's fingerprint under our call's number, if it differs from ours.
std::optional<std::uint64_t> disagreement(RankControl& rank_control, const Waiter& waiter,
                                          Rank peer) {
  const Fingerprint theirs{
      rank_control.record(peer).of(waiter.call).fingerprint.load(std::memory_order_relaxed)};
  const Fingerprint ours{waiter.fingerprint};
  if (theirs.call() != ours.call() || theirs == ours) return std::nullopt;
  return theirs.bits;
}

void report_gone_on(RankControl& rank_control, const Waiter& waiter, Rank peer,
                    int round) noexcept {
  rank_control.abort(make_error(Code::mismatch, [&] {
    const auto number = rank_control.record(peer).number.load(std::memory_order_relaxed);
    return rank_control.name(peer) + " has gone on to " + rank_control.describe_call(peer, number) +
           ", but " + rank_control.name(waiter.rank) + " still waits for its data in round " +
           std::to_string(round) + " of " +
           rank_control.describe_call(waiter.rank, waiter.call - waiter.behind);
  }));
}

// LongWait is a wait that the bare probes did not end.
class LongWait {
 public:
  LongWait(Waiter& waiter, const Atomic<std::uint32_t>& word, std::uint32_t value, Rank owner,
           int round)
      : waiter_(waiter),
        rank_control_(*waiter.rank_control),
        wake_futex_(rank_control_.wake_futex(waiter.rank)),
        slow_waits_(rank_control_.slow_waits(waiter.rank)),
        word_(word),
        value_(value),
        owner_(owner),
        round_(round) {}

  // As wait_long().
  bool run() noexcept;
  // As look_about().
  bool look(std::int64_t& next_look_ns) noexcept;

 private:
  bool done() const {
    return reached(word_.load(std::memory_order_acquire), value_);  // pairs as in wait_until()
  }
  bool sleep() noexcept;
  // The rare checks, after the wake_futex has shown `rung` and the word had not come. True: the
  // wait has failed because the communicator has ended, perhaps by this check.
  bool fails(std::uint32_t rung) noexcept;
  // fails() without a record, for a wait that is recorded only if it fails.
  bool is_over(std::uint32_t rung) noexcept;
  void tell() noexcept;
  std::string still_needed() const {
    return rank_control_.name(owner_) +
           " is still needed: " + rank_control_.describe_waits(waiter_.rank);
  }
  template <class Text>
  bool end_with(SlowWait::End how, Code code, const Text& text) noexcept;
  // Reads the clock. The first call begins the call's time.
  std::int64_t look_at_clock() noexcept;
  // From now on the record shows this wait.
  void begin_record() noexcept;
  bool come() noexcept;

  Waiter& waiter_;
  RankControl& rank_control_;
  WakeFutex& wake_futex_;
  SlowWaits& slow_waits_;
  const Atomic<std::uint32_t>& word_;
  const std::uint32_t value_;
  const Rank owner_;
  const int round_;
  bool is_recorded_ = false;
  std::int64_t begin_ns_ = 0;      // first look at the clock; 0: none yet
  std::int64_t next_look_ns_ = 0;  // when fails() is due
};

std::int64_t LongWait::look_at_clock() noexcept {
  const std::int64_t now = now_ns();
  if (begin_ns_ == 0) {
    begin_ns_ = now;
    next_look_ns_ = std::min(waiter_.deadline(now), deadline_after(now, look_about_ns()));
    begin_long_wait();
  }
  return now;
}

void LongWait::begin_record() noexcept {
  if (is_recorded_) return;
  is_recorded_ = true;
  look_at_clock();
  tell();
  slow_waits_.begin(waiter_.call, owner_, round_, begin_ns_);
}

void LongWait::tell() noexcept {
  wake_futex_.waits_in_round.store(round_, std::memory_order_relaxed);
  wake_futex_.waits_for.store(owner_, std::memory_order_relaxed);
}

bool LongWait::come() noexcept {
  if (is_recorded_) {
    slow_waits_.end(SlowWait::End::came, now_ns());
    wake_futex_.waits_for.store(-1, std::memory_order_relaxed);
  }
  return true;
}

template <class Text>
bool LongWait::end_with(SlowWait::End how, Code code, const Text& text) noexcept {
  begin_record();
  slow_waits_.end(how, now_ns());
  rank_control_.abort(make_error(code, text));
  return true;
}

bool LongWait::fails(std::uint32_t rung) noexcept {
  begin_record();
  return is_over(rung);
}

bool LongWait::is_over(std::uint32_t rung) noexcept {
  if ((rung & kAbortBit) != 0 || rank_control_.follow_above()) {
    begin_record();
    slow_waits_.end(SlowWait::End::aborted, now_ns());
    return true;
  }
  // Check this before any of the owner's values is trusted.
  if (rank_control_.is_written_over(owner_)) {
    return end_with(SlowWait::End::lost, Code::rank_lost, [&] { return still_needed(); });
  }
  if (rank_control_.has_left(owner_) && !done()) {
    return end_with(SlowWait::End::lost, Code::rank_lost, [&] {
      return rank_control_.name(owner_) +
             " has left and is still needed: " + rank_control_.describe_waits(waiter_.rank);
    });
  }
  // A killed process tells its peers nothing; the kernel knows. Ask it only from the second look
  // on: most waits end sooner, and several of its system calls cost more than a yield.
  const std::int64_t now = now_ns();
  const bool is_due = now >= next_look_ns_;
  if (is_due && rank_control_.is_lost(owner_) && !done()) {
    return end_with(SlowWait::End::lost, Code::rank_lost, [&] { return still_needed(); });
  }
  if (is_due && is_interrupted()) {
    return end_with(SlowWait::End::aborted, Code::aborted,
                    [&] { return interrupted(rank_control_.describe_waits(waiter_.rank)); });
  }
  // A peer that has finished the call with the awaited data has published all of them, unless its
  // call was a different one. The fingerprint of a peer still in that call shows the difference.
  if (const std::int64_t ahead = calls_ahead(rank_control_, waiter_, owner_); ahead >= 0) {
    const auto theirs = disagreement(rank_control_, waiter_, owner_);
    if (theirs || (ahead > 0 && !done())) {
      begin_record();
      slow_waits_.end(SlowWait::End::mismatch, now_ns());
      if (theirs) {
        report_mismatch(rank_control_, waiter_.rank, owner_, *theirs);
      } else {
        report_gone_on(rank_control_, waiter_, owner_, round_);
      }
      return true;
    }
  }
  const std::int64_t deadline_ns = waiter_.deadline(now);
  if (now >= deadline_ns) {
    return end_with(SlowWait::End::deadline, Code::timeout, [&] {
      return no_answer_within(waiter_.call_timeout_ns(),
                              rank_control_.describe_waits(waiter_.rank));
    });
  }
  if (is_due && rank_control_.is_abandoned(owner_, waiter_.rank) && !done()) {
    return end_with(SlowWait::End::lost, Code::rank_lost, [&] { return still_needed(); });
  }
  if (is_due) next_look_ns_ = std::min(deadline_ns, deadline_after(now, look_about_ns()));
  return false;
}

bool LongWait::look(std::int64_t& next_look_ns) noexcept {
  // Acquire: pairs with abort(), as in sleep().
  const std::uint32_t rung = wake_futex_.word.load(std::memory_order_acquire);
  if ((rung & kAbortBit) == 0 && now_ns() < next_look_ns) return true;
  if (done()) return true;
  tell();
  if (next_look_ns == kNextLookIsFirst) {
    look_at_clock();
  } else {
    next_look_ns_ = next_look_ns;
  }
  if (is_over(rung)) return false;
  next_look_ns = next_look_ns_;
  return true;
}

bool LongWait::sleep() noexcept {
  begin_record();
  const Parking parking(rank_control_, waiter_.rank, owner_, word_);
  for (;;) {
    // Read the wake_futex before the word: a ring after this load changes the wake_futex, and the
    // kernel then does not let us sleep. Acquire: pairs with abort()'s release fetch_or, so that
    // the reason is readable.
    const std::uint32_t rung = wake_futex_.word.load(std::memory_order_acquire);
    if (done()) return true;
    if (fails(rung)) return false;
    futex_wait(wake_futex_.word, rung, next_look_ns_, rank_control_.threads());
  }
}

bool LongWait::run() noexcept {
  SpinBudget patience(rank_control_.policy(), kBareProbes);
  // Relaxed: a later value is compared with it. An earlier abort counts as a new one.
  std::uint32_t rung = wake_futex_.word.load(std::memory_order_relaxed) & ~kAbortBit;
  for (;;) {
    switch (patience.next()) {
      case SpinBudget::Turn::probe:
        pause_cpu();
        break;
      case SpinBudget::Turn::yield:
        yield_cpu();
        break;
      case SpinBudget::Turn::look: {
        // Acquire: pairs with abort(), as in sleep(). The wake_futex is on our own line.
        const std::uint32_t before =
            std::exchange(rung, wake_futex_.word.load(std::memory_order_acquire));
        const std::int64_t now = look_at_clock();
        patience.looked(now);
        const bool is_due = rung != before || now >= next_look_ns_;
        if (is_due && !done() && fails(rung)) return false;
        break;
      }
      case SpinBudget::Turn::sleep:
        return sleep() && come();
    }
    if (done()) return come();
  }
}

// The check of the calling thread.
struct InterruptCheck {
  int (*ask)() = nullptr;
  std::int64_t next_ns = 0;
  bool answer = false;  // of begin_long_wait()
};
thread_local constinit InterruptCheck interrupt_check;

}  // namespace

void set_interrupt_check(int (*check)()) noexcept { interrupt_check = {check}; }

void begin_long_wait() noexcept {
  if (interrupt_check.ask != nullptr) interrupt_check.answer |= interrupt_check.ask() != 0;
}

bool is_interrupted() noexcept {
  if (interrupt_check.ask == nullptr) return false;
  if (std::exchange(interrupt_check.answer, false)) return true;
  const std::int64_t now = now_ns();
  if (now < interrupt_check.next_ns) return false;
  interrupt_check.next_ns = deadline_after(now, look_about_ns() / 2);
  return interrupt_check.ask() != 0;
}

std::string interrupted(const std::string& waiting) {
  return "the wait was interrupted: " + waiting;
}

void report_mismatch(RankControl& rank_control, Rank rank, Rank peer,
                     std::uint64_t theirs) noexcept {
  rank_control.abort(make_error(Code::mismatch, [&] {
    CallRecord& record = rank_control.record(rank);
    const CallRecord::What mine = record.of(record.number.load(std::memory_order_relaxed));
    const Fingerprint other{theirs};
    // We know only the lowest bits of that call's number, and of() needs no more.
    const auto number = static_cast<std::uint64_t>(other.call());
    const CallRecord::What there = rank_control.record(peer).of(number);
    return difference({.print = {mine.fingerprint.load(std::memory_order_relaxed)},
                       .rank = rank_control.shown(rank),
                       .count = mine.count.load(std::memory_order_relaxed),
                       .algorithm = rank_control.algorithm_of(mine)},
                      {.print = other,
                       .rank = rank_control.shown(peer),
                       .count = there.count.load(std::memory_order_relaxed),
                       .algorithm = rank_control.algorithm_of(there)});
  }));
}

void report_call_history_mismatch(RankControl& rank_control, Rank rank, Rank peer) noexcept {
  rank_control.abort(make_error(Code::mismatch, [&] {
    return rank_control.name(rank) + " and " + rank_control.name(peer) +
           " make the same call, but made different ones before";
  }));
}

void RecordedWait::begin(Rank peer) noexcept {
  call_->show();
  call_->figures->waits_for.store((call_->peer >= 0 ? call_->peer : peer) + 1,
                                  std::memory_order_relaxed);
  begin_ns_ = now_ns();
}

void RecordedWait::end() noexcept {
  RankCalls& figures = *call_->figures;
  const std::int64_t before = figures.waited_ns.load(std::memory_order_relaxed);
  figures.waited_ns.store(before + now_ns() - begin_ns_, std::memory_order_relaxed);
  figures.waits_for.store(0, std::memory_order_relaxed);
}

bool wait_long(Waiter& waiter, const Atomic<std::uint32_t>& word, std::uint32_t value, Rank owner,
               int round) noexcept {
  const RecordedWait recorded(waiter.timer, owner);
  if (waiter.others == nullptr) return LongWait(waiter, word, value, owner, round).run();
  const WaitTarget awaited{&word, value, owner};
  std::int64_t next_look_ns = 0;
  waiter.others->wait_for(awaited);
  // Acquire: pairs as in wait_until().
  for (int turn = 0; !reached(word.load(std::memory_order_acquire), value); ++turn) {
    if (!worth_waiting(waiter, awaited, round, next_look_ns)) return false;
    waiter.others->give_way(turn);
  }
  has_come(waiter);
  return true;
}

bool look_about(Waiter& waiter, const WaitTarget& awaited, int round,
                std::int64_t& next_look_ns) noexcept {
  return LongWait(waiter, *awaited.word, awaited.value, awaited.owner, round).look(next_look_ns);
}

void has_come(Waiter& waiter) noexcept {
  waiter.rank_control->wake_futex(waiter.rank).waits_for.store(-1, std::memory_order_relaxed);
}

}  // namespace rankine
