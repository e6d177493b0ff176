#include "engine/run/rank_control.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/run/fingerprint.h"
#include "engine/run/wait.h"

namespace rankine {
namespace {

Status told_below(const Status& reason) {
  return make_error(reason.code(), [&] {
    return "the communicator that this one was split from has ended: " + reason.text();
  });
}

// A rank's word in an agreement: the use, and the value in 32 bits.
std::uint64_t word_of(Agreement::Use use, std::uint32_t value) {
  return std::uint64_t{static_cast<std::uint32_t>(use)} << 32 | value;
}

Status told_above(const std::string& who, const Status& reason) {
  return make_error(reason.code(), [&] { return "among " + who + ": " + reason.text(); });
}

}  // namespace

RankControl::RankControl(int ranks, WaitPolicy policy, std::int64_t timeout_ns,
                         std::optional<bool> strict, LinesMemory lines, Crowd crowd,
                         RankProcesses* processes)
    : ranks_(ranks),
      policy_(policy),
      timeout_ns_(timeout_ns),
      strict_(strict.value_or(false) ||
              !(processes != nullptr ? processes->have_barriers() : membarrier_available())),
      own_lines_(lines.base == nullptr ? std::make_unique<RankLines[]>(index(ranks)) : nullptr),
      lines_(lines.base != nullptr ? lines
                                   : LinesMemory{reinterpret_cast<std::byte*>(own_lines_.get())}),
      crowd_(crowd),
      processes_(processes),
      own_slow_waits_(processes == nullptr ? std::make_unique<SlowWaits[]>(index(ranks)) : nullptr),
      slow_waits_(processes == nullptr ? own_slow_waits_.get() : processes->slow_waits()),
      aborted_(processes == nullptr ? own_aborted_ : processes->aborted()) {
  if (own_lines_ != nullptr) return;
  for (Rank r = 0; r < ranks; ++r) {
    if (processes_ == nullptr || processes_->sets_up(r))
      new (lines_.base + index(r) * lines_.stride) RankLines;
  }
}

void RankControl::depend_no_more() {
  if (above_ != nullptr) above_->listeners_.remove(*this);
  above_ = nullptr;
}

void RankControl::depend_on(RankControl& above, bool both_ways, std::string who) {
  // Threads that tell of an end read these members.
  who_ = std::move(who);
  above_ = &above;
  ends_above_ = both_ways;
  above.listeners_.add(*this);
  // `above` may have ended before add(). Sequentially consistent: pairs with abort(), which looks
  // for dependents after it has set aborted_.
  if (above.aborted_.load(std::memory_order_seq_cst)) abort(told_below(above.reason()));
}

bool RankControl::follow_above() {
  if (above_ != nullptr && above_->processes_ != nullptr && above_->aborted()) {
    abort(told_below(above_->reason()));
  }
  return aborted();
}

void RankControl::ring(Rank r, bool abort) noexcept {
  Atomic<std::uint32_t>& word = wake_futex(r).word;
  // Read-modify-writes only, so that a ring and an abort never undo each other. Release: pairs with
  // the acquire loads in wait_long().
  if (abort) {
    word.fetch_or(1, std::memory_order_release);
  } else {
    word.fetch_add(2, std::memory_order_release);
  }
  futex_wake_all(word, threads());
}

void RankControl::wake_parked_on(const Atomic<std::uint32_t>& word) {
  for (Rank r = 0; r < ranks_; ++r) {
    // Relaxed: the count that made us look (announce()) orders this load after the parked rank's
    // store. A rank that parks after this load checks the word once more before it sleeps.
    if (wake_futex(r).parked_on.load(std::memory_order_relaxed) == &word) ring(r, false);
  }
}

void RankControl::tell_dependents(const Status& reason) const {
  listeners_.tell([&](RankControl& below) { below.end_downwards(told_below(reason)); });
}

void RankControl::end_downwards(Status reason) {
  bool over = false;
  {
    // reason() takes this lock, so it finds the text.
    const std::lock_guard lock(reason_mutex_);
    // Sequentially consistent: pairs with aborted() and begin().
    if (aborted_.compare_exchange_strong(over, true, std::memory_order_seq_cst)) {
      reason_ = reason;
      if (processes_ != nullptr) processes_->publish_reason(reason.code(), reason.text().c_str());
    }
  }
  if (over) return tell_dependents(own_reason());
  for (Rank r = 0; r < ranks_; ++r) ring(r, true);
  tell_dependents(reason);
}

void RankControl::abort(Status reason) {
  end_downwards(reason);
  if (above_ != nullptr && ends_above_) {
    above_->abort(told_above(who_, reason));
  }
}

void RankControl::end_downwards_now() noexcept {
  bool over = false;
  if (aborted_.compare_exchange_strong(over, true, std::memory_order_seq_cst)) {
    if (processes_ != nullptr) processes_->publish_reason(Code::aborted, "abort() was called");
    for (Rank r = 0; r < ranks_; ++r) ring(r, true);
  }
  listeners_.tell([](RankControl& below) { below.end_downwards_now(); });
}

void RankControl::abort_now() noexcept {
  end_downwards_now();
  if (above_ != nullptr && ends_above_) above_->abort_now();
}

Status RankControl::reason() const {
  Status why = own_reason();
  if (!aborted()) return why;
  // The thread that ended this RankControl may not have told the dependents yet. A rank that knows
  // of the end may call one of them next, so this thread tells them too.
  tell_dependents(why);
  if (above_ != nullptr && ends_above_) {
    above_->abort(told_above(who_, why));
  }
  return why;
}

Status RankControl::own_reason() const {
  const std::lock_guard lock(reason_mutex_);
  if (!reason_.ok()) return reason_;
  if (processes_ != nullptr) return processes_->why();
  // A signal handler cannot store a text.
  return make_error(Code::aborted, [] { return "abort() was called"; });
}

bool RankControl::process_has_ended(Rank r) const {
  return is_elsewhere(r) && processes_->has_ended(r);
}

bool RankControl::has_ended(Rank r) {
  const int thread = record(r).thread.load(std::memory_order_relaxed);
  if (!is_elsewhere(r)) return thread_has_ended(thread);
  return processes_->has_ended(r) || thread_has_ended(thread, processes_->process_of(r));
}

bool RankControl::has_left(Rank r) {
  // Acquire: pairs with leave().
  return wake_futex(r).left.load(std::memory_order_acquire) ||
         (processes_ != nullptr && processes_->has_left(r));
}

bool RankControl::is_written_over(Rank r) {
  if (processes_ == nullptr) return false;
  constexpr int kMostThreadId = 1 << 22;  // the kernel's limit
  const int thread = record(r).thread.load(std::memory_order_relaxed);
  const Rank next = wake_futex(r).waits_for.load(std::memory_order_relaxed);
  return (thread != kPutDown && (thread < 0 || thread > kMostThreadId)) || next < -1 ||
         next >= ranks_;
}

bool RankControl::is_lost(Rank r) {
  if (process_has_ended(r)) return true;
  // A thread may end between calls, and another thread may then play the rank.
  const CallRecord& made = record(r);
  const auto number = made.number.load(std::memory_order_relaxed);
  if (!made.inside.load(std::memory_order_relaxed) || !has_ended(r)) return false;
  // Exclude a rank that left the call while we looked or that went on with another thread: once the
  // kernel says that a thread has ended, its stores are visible. Relaxed: x86 keeps the order of a
  // new call's number and `inside`.
  return made.inside.load(std::memory_order_relaxed) &&
         made.number.load(std::memory_order_relaxed) == number;
}

bool RankControl::is_abandoned(Rank r, Rank waiter) {
  const int self = thread_id();
  const WakeFutex& its = wake_futex(r);
  if (wake_futex(waiter).first_caller.load(std::memory_order_relaxed) != self ||
      its.made_by.load(std::memory_order_relaxed) == self) {
    return false;
  }
  const CallRecord& made = record(r);
  const auto number = made.number.load(std::memory_order_relaxed);
  const int thread = made.thread.load(std::memory_order_relaxed);
  if (thread == 0 || its.first_caller.load(std::memory_order_relaxed) != thread) return false;
  if (!has_ended(r)) return false;
  // Exclude a rank that another thread resumed while we looked, as in is_lost().
  return !made.inside.load(std::memory_order_relaxed) &&
         made.number.load(std::memory_order_relaxed) == number;
}

void RankControl::wait_until_quiet(Rank r, bool lends) {
  if (processes_ != nullptr && !lends) return;
  // Pairs with begin(): a rank that began without seeing the abort is seen here.
  if (!strict_) barrier_everywhere(threads());
  const std::int64_t until = now_ns() + kQuietNs;
  std::int64_t pause_ns = 20'000;  // grows: many ranks may wait for one stopped rank
  for (Rank q = 0; q < ranks_; ++q) {
    if (q == r) continue;
    // Ignore put-down calls, which no thread resumes now, and ranks that this thread plays: they go
    // on only when this thread does.
    const auto is_in_slot = [&] {
      // Sequentially consistent: pairs with begin() in strict mode; acquire: with end().
      if (!record(q).inside.load(std::memory_order_seq_cst)) return false;
      const int thread = record(q).thread.load(std::memory_order_acquire);  // pairs with put_down()
      return thread != kPutDown && (is_elsewhere(q) || thread != thread_id());
    };
    while (is_in_slot() && now_ns() < until && !has_ended(q)) {
      sleep_ns(pause_ns);
      pause_ns = std::min<std::int64_t>(2 * pause_ns, 2'000'000);
    }
  }
}

void RankControl::leave(Rank r) {
  wake_futex(r).left.store(true, std::memory_order_release);  // pairs with has_left()
  // A rank that is awake looks when its wake_futex changes. A rank that sleeps until this rank's
  // word changes is in the parked count; there is hardly ever one, and a wake-up per rank is
  // expensive.
  for (Rank q = 0; q < ranks_; ++q) wake_futex(q).word.fetch_add(2, std::memory_order_release);
  if (!is_parked_on(parked(r).count)) return;
  for (Rank q = 0; q < ranks_; ++q) futex_wake_all(wake_futex(q).word, threads());
}

void RankControl::come_back(Rank r) { wake_futex(r).left.store(false, std::memory_order_relaxed); }

bool Agreement::take_step(Use use, std::uint32_t value) {
  Ballot& mine = rank_control_.ballot(rank_);
  mine.begun = step_;
  word_ = word_of(use, value);
  // This thread plays the rank now: RankControl::is_lost(). The exchange below publishes it.
  rank_control_.record(rank_).thread.store(thread_id(), std::memory_order_relaxed);
  // Relaxed: another rank may change the state, but only by an exchange from the value seen here.
  std::uint64_t seen = mine.state.load(std::memory_order_relaxed);
  if (is_settled(seen)) return false;
  // Release: pairs with is_complete() of a rank that is two steps behind.
  mine.said[step_ & 1].store(word_, std::memory_order_release);
  const std::uint64_t taken = Ballot::next(seen, true);
  // Release: pairs with settle().
  if (!mine.state.compare_exchange_strong(seen, taken, std::memory_order_release)) return false;
  taken_ = taken;
  return true;
}

void Agreement::add(std::uint64_t word) {
  decision_.survivors.push_back(next_);
  decision_.value &= static_cast<std::uint32_t>(word);
  decision_.same_use = decision_.same_use && word >> 32 == word_ >> 32;
  decision_.same_value = decision_.same_value && word == word_;
}

const char* RankControl::algorithm_of(const CallRecord::What& what) const {
  const char* const said = what.algorithm.load(std::memory_order_relaxed);
  return processes_ != nullptr ? processes_->known_name(said) : said;
}

std::string RankControl::describe_call(Rank r, std::uint64_t number) {
  const CallRecord::What what = record(r).of(number);
  const char* algorithm = algorithm_of(what);
  return describe(Fingerprint{what.fingerprint.load(std::memory_order_relaxed)}) + " (" +
         (algorithm != nullptr ? algorithm : "?") + ", count " +
         std::to_string(what.count.load(std::memory_order_relaxed)) + "), call " +
         std::to_string(number);
}

RankControl::State RankControl::state_of(Rank r) {
  CallRecord& call = record(r);
  const auto number = call.number.load(std::memory_order_relaxed);
  const Rank next = wake_futex(r).waits_for.load(std::memory_order_relaxed);
  const std::string called = name(r);
  const std::string site = slow_waits_[r].site.get();
  const std::string at = site.empty() ? "" : ", at call site " + site;
  if (is_written_over(r)) {
    return {"the shared memory of " + called + "'s process " +
            std::to_string(processes_->process_of(r)) + " has been overwritten by a program"};
  }
  const std::string calls = counted(number, "call");
  if (has_left(r)) {
    return {called + " has left after " + calls};
  }
  const bool gone = has_ended(r);
  if (gone && process_has_ended(r)) {
    return {called + "'s process " + std::to_string(processes_->process_of(r)) + " has ended " +
            (call.inside.load(std::memory_order_relaxed) ? "in " + describe_call(r, number)
                                                         : "after " + calls) +
            at};
  }
  if (!call.inside.load(std::memory_order_relaxed)) {
    return {called + " is in no collective" + at + "; it has made " + calls +
            (gone ? ", and the thread that made the last one has ended" : "")};
  }
  const std::string what = describe_call(r, number) + at;
  if (gone) return {called + "'s thread has ended in " + what};
  if (next < 0) return {called + " is at work in " + what};
  const int round = wake_futex(r).waits_in_round.load(std::memory_order_relaxed);
  return {
      called + " waits for " + name(next) + " in round " + std::to_string(round) + " of " + what,
      next};
}

std::string RankControl::describe_waits(Rank first) {
  std::string text;
  std::vector<bool> told = left_out_;
  told.resize(index(ranks_), false);
  for (Rank r = first; r >= 0 && !told[index(r)];) {
    told[index(r)] = true;
    const State state = state_of(r);
    text += (text.empty() ? "" : "; ") + state.text;
    r = state.waits_for;
  }
  return text;
}

}  // namespace rankine
