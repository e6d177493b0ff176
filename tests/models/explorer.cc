#include "tests/models/explorer.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace rankine::model {
namespace {

constexpr std::uint64_t kMostTurns = 20'000;

bool acquires(std::memory_order order) {
  return order == std::memory_order_acquire || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}
bool releases(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}

bool reads(Act act) { return act == Act::read || act == Act::read_last; }

[[noreturn]] void give_up(const char* why) {
  std::fprintf(stderr, "model: %s\n", why);
  std::abort();
}

}  // namespace

std::string name_of(std::memory_order order) {
  switch (order) {
    case std::memory_order_relaxed:
      return "relaxed";
    case std::memory_order_acquire:
      return "acquire";
    case std::memory_order_release:
      return "release";
    case std::memory_order_acq_rel:
      return "acq_rel";
    default:
      return "seq_cst";
  }
}

std::vector<std::memory_order> weaker(Kind kind, std::memory_order order) {
  switch (order) {
    case std::memory_order_seq_cst:
      if (kind == Kind::load) return {std::memory_order_acquire};
      if (kind == Kind::store) return {std::memory_order_release};
      return {std::memory_order_acq_rel};
    case std::memory_order_acq_rel:
      return {std::memory_order_acquire, std::memory_order_release};
    case std::memory_order_acquire:
    case std::memory_order_release:
      return {std::memory_order_relaxed};
    default:
      return {};
  }
}

void Explorer::View::join_words(const View& other) {
  const auto theirs = other.oldest;  // a copy, so that the compiler can vectorise the loop
  for (std::size_t i = 0; i < kWords; ++i) oldest[i] = std::max(oldest[i], theirs[i]);
}

void Explorer::View::join(const View& other) {
  join_words(other);
  for (std::size_t i = 0; i < kThreads; ++i) clock[i] = std::max(clock[i], other.clock[i]);
}

Explorer::Explorer(const Options& options) : options_(options), words_(kWords) {}
Explorer::~Explorer() = default;

Explorer::Outcome Explorer::explore(const std::function<void(Explorer&)>& scenario) {
  Outcome outcome;
  path_.clear();
  do {
    begin_execution();
    scenario(*this);
    if (!fault_.empty()) {
      outcome.fault = fault_;
      ++outcome.executions;
      // Repeats the faulty execution and records its turns.
      tracing_ = true;
      begin_execution();
      scenario(*this);
      tracing_ = false;
      outcome.turns = std::move(turns_);
      return outcome;
    }
    ++(cut_ ? outcome.cut : outcome.executions);
    if (outcome.executions + outcome.cut >= options_.most_executions) return outcome;
  } while (backtrack());
  outcome.exhausted = true;
  return outcome;
}

bool Explorer::backtrack() {
  path_.resize(depth_);
  while (!path_.empty() && path_.back().index + 1 == path_.back().count) path_.pop_back();
  if (path_.empty()) return false;
  ++path_.back().index;
  return true;
}

void Explorer::begin_execution() {
  depth_ = 0;
  free_run_ = cut_ = false;
  fault_.clear();
  turns_.clear();
  turns_taken_ = 0;
  preemptions_ = 0;
  sleep_ = 0;
  now_ = 1'000'000'000;
  for (std::size_t i = 0; i < words_used_; ++i) words_[i].count = words_[i].sequential = 0;
  words_used_ = 0;
  word_table_.fill({});
  locks_.clear();
  cells_.clear();
}

void Explorer::run(std::vector<std::function<void()>> threads) {
  if (threads.size() > kThreads) give_up("too many threads");
  threads_.assign(threads.size(), {});
  for (std::size_t t = 0; t < threads.size(); ++t) {
    threads_[t].view.clock[t] = 1;
    threads[t] = [this, body = std::move(threads[t])] {
      body();
      self().state = State::ended;
    };
  }
  self_ = 0;
  Machine::current = this;
  fibers_.run(std::move(threads), 0, [this] { return self_ = pick(); });
  Machine::current = nullptr;
}

void Explorer::require(bool holds, const char* what) {
  if (!holds) fail(what);
}

void Explorer::fail(const std::string& what) {
  // A free run makes no choices; it only lets the threads end.
  if (free_run_) return;
  fault_ = what;
  free_run_ = true;
  note("fault: " + what);
}

void Explorer::note(std::string_view what) {
  if (!tracing_) return;
  turns_.push_back("thread " + std::to_string(self_) + ": " + std::string(what));
}

bool Explorer::can_move(const Thread& thread) const {
  switch (thread.state) {
    case State::ready:
      return true;
    case State::locking: {
      const auto found = locks_.find(thread.word);
      return found == locks_.end() || !found->second.held;
    }
    case State::dozing:
      return std::any_of(
          thread.seen.begin(),
          thread.seen.begin() +
              static_cast<std::ptrdiff_t>(std::min(thread.loads, thread.seen.size())),
          [&](const Seen& seen) { return words_[seen.word].count > seen.value + 1; });
    default:
      return false;
  }
}

// True if a turn that was tried in a state need not be tried again after `moved`.
bool Explorer::stays_tried(const Thread& tried, const Thread& moved) {
  if (tried.act == Act::nothing || moved.act == Act::nothing) return true;
  if (tried.act == Act::everybody || moved.act == Act::everybody) return false;
  // A barrier concerns two threads.
  if (tried.act == Act::barrier && (tried.word == &moved || tried.word == moved.word)) return false;
  if (moved.act == Act::barrier) return moved.word != &tried && tried.word != &moved;
  if (tried.act == Act::barrier) return true;
  // A load other than read_last would see the same value after the store.
  return tried.word != moved.word || moved.act == Act::read ||
         (reads(tried.act) && reads(moved.act));
}

// False if the next turn is a load and all values of its word have been tried.
bool Explorer::has_news(const Thread& thread) const {
  if (!reads(thread.act) || thread.tried == 0) return true;
  const Word* word = find(thread.word);
  return (word != nullptr ? word->count : 1) > thread.tried;
}

// The next thread to run; -1: all have ended.
int Explorer::pick() {
  for (;;) {
    std::uint32_t able = 0;
    bool all_ended = true;
    for (std::size_t t = 0; t < threads_.size(); ++t) {
      const Thread& thread = threads_[t];
      all_ended = all_ended && thread.state == State::ended;
      if (!can_move(thread)) continue;
      if (thread.act == Act::nothing) return static_cast<int>(t);
      able |= 1U << t;
    }
    if (all_ended) return -1;
    if (able == 0) {
      wait_for_time();
      continue;
    }
    if (++turns_taken_ > kMostTurns) {
      if (free_run_) give_up("threads do not come to an end");
      fail("threads do not come to an end");
    }
    int next = -1;
    if (free_run_) {
      // The threads take turns in order.
      for (std::size_t i = 1; i <= threads_.size(); ++i) {
        const std::size_t t = (static_cast<std::size_t>(self_) + i) % threads_.size();
        if ((able >> t & 1) != 0) return static_cast<int>(t);
      }
    }
    const bool bounded = options_.preemptions >= 0;
    const bool self_able = (able >> self_ & 1) != 0;
    std::uint32_t open = able;
    if (!bounded) {
      open &= ~sleep_;
      for (std::size_t t = 0; t < threads_.size(); ++t) {
        if (!has_news(threads_[t])) open &= ~(1U << t);
      }
    } else if (self_able && preemptions_ == options_.preemptions) {
      open = 1U << self_;
    }
    if (open == 0) {
      cut_ = free_run_ = true;
      continue;
    }
    if ((open & (open - 1)) == 0) {
      next = std::countr_zero(open);
    } else {
      if (depth_ == path_.size()) {
        Choice choice{.sleep = sleep_};
        for (std::size_t t = 0; t < threads_.size(); ++t) choice.tried[t] = threads_[t].tried;
        if ((open >> self_ & 1) != 0) {
          choice.threads[choice.count++] = static_cast<std::uint8_t>(self_);
        }
        for (std::size_t t = 0; t < threads_.size(); ++t) {
          if ((open >> t & 1) != 0 && static_cast<int>(t) != self_) {
            choice.threads[choice.count++] = static_cast<std::uint8_t>(t);
          }
        }
        path_.push_back(choice);
      }
      const Choice& choice = path_[depth_++];
      next = choice.threads[choice.index];
      sleep_ = choice.sleep;
      for (std::size_t t = 0; t < threads_.size(); ++t) threads_[t].tried = choice.tried[t];
      for (std::size_t i = 0; i < choice.index; ++i) sleep_ |= 1U << choice.threads[i];
    }
    if (self_able && next != self_) ++preemptions_;
    const Thread& moving = threads_[static_cast<std::size_t>(next)];
    for (std::size_t t = 0; t < threads_.size() && !bounded; ++t) {
      Thread& other = threads_[t];
      if (moving.act == Act::everybody || (moving.act == Act::barrier && moving.word == &other)) {
        other.tried = 0;
      }
      if ((sleep_ >> t & 1) == 0) continue;
      if (stays_tried(other, moving)) continue;
      sleep_ &= ~(1U << t);
      if (reads(other.act) && moving.act == Act::write) {
        const Word* word = find(other.word);
        other.tried = static_cast<std::uint8_t>(word != nullptr ? word->count : 1);
      }
    }
    return next;
  }
}

// If no thread can move, the clock moves on.
void Explorer::wait_for_time() {
  if (!options_.may_time_out) {
    std::string who;
    for (std::size_t t = 0; t < threads_.size(); ++t) {
      const State state = threads_[t].state;
      if (state == State::ended) continue;
      who += " thread " + std::to_string(t) +
             (state == State::locking  ? " waits for a lock"
              : state == State::asleep ? " sleeps"
                                       : " looks again and again");
    }
    fail("nobody can move:" + who);
  }
  Thread* first = nullptr;
  for (Thread& thread : threads_) {
    if (thread.state != State::asleep && thread.state != State::dozing) continue;
    if (first == nullptr || thread.until < first->until) first = &thread;
  }
  if (first == nullptr) give_up("a deadlock of locks");
  now_ = std::max(now_, first->until);
  // Every store has arrived by the deadline.
  for (std::size_t w = 0; w < words_used_; ++w) {
    first->view.oldest[w] = static_cast<std::uint8_t>(words_[w].count - 1);
  }
  first->state = State::ready;
  first->act = Act::nothing;
}

// Passes control to the next thread; returns at this thread's next turn.
void Explorer::pass_on() {
  const int me = self_;
  const int next = pick();
  self_ = next;
  fibers_.go_to(next);
  self_ = me;
  self().act = Act::nothing;
}

void Explorer::come_to(Act act, const void* word) {
  self().act = act;
  self().word = word;
  self().tried = 0;
  self().last_act = act;
  pass_on();
}

std::size_t Explorer::choose(std::size_t count) {
  if (count == 1 || free_run_) return 0;
  if (depth_ == path_.size()) path_.push_back({.count = static_cast<std::uint8_t>(count)});
  return path_[depth_++].index;
}

// The place of a word in the table, or the free place for it.
std::size_t Explorer::place_of(const void* word) const {
  std::size_t at = reinterpret_cast<std::uintptr_t>(word) * 0x9e3779b97f4a7c15u >> 56;
  while (word_table_[at].first != word && word_table_[at].first != nullptr) {
    at = (at + 1) % word_table_.size();
  }
  return at;
}

const Explorer::Word* Explorer::find(const void* word) const {
  const auto& [found, index] = word_table_[place_of(word)];
  return found != nullptr ? &words_[index] : nullptr;
}

std::size_t Explorer::index_of(const void* word, std::uint64_t newest) {
  const std::size_t at = place_of(word);
  if (word_table_[at].first != nullptr) return word_table_[at].second;
  if (words_used_ == kWords) give_up("too many words");
  word_table_[at] = {word, words_used_};
  Word& fresh = words_[words_used_];
  if (fresh.values.empty()) fresh.values.resize(8);
  fresh.values[0] = {newest, {}};
  fresh.count = 1;
  fresh.sequential = 0;
  return words_used_++;
}

std::memory_order Explorer::effective(Kind kind, std::memory_order order, const Site& site) {
  const std::size_t hash =
      reinterpret_cast<std::uintptr_t>(site.file_name()) * 31 + site.line() * 7 + site.column();
  for (std::size_t at = hash % known_uses_.size();; at = (at + 1) % known_uses_.size()) {
    KnownUse& use = known_uses_[at];
    if (use.file == nullptr) {
      const Use key{site.file_name(), site.line(), site.column(), kind, order};
      use = {site.file_name(), site.line(), site.column(), order, order, &uses_[key]};
      if (options_.weakened == key) use.effective = options_.weakened_to;
    }
    if (use.file == site.file_name() && use.line == site.line() && use.column == site.column() &&
        use.order == order) {
      ++*use.counter;
      return use.effective;
    }
  }
}

std::uint64_t Explorer::load(const void* word, std::uint64_t newest, std::memory_order asked,
                             const Site& site) {
  const std::memory_order order = effective(Kind::load, asked, site);
  const std::size_t w = index_of(word, newest);
  Word& history = words_[w];
  Thread& me = self();
  std::size_t oldest = std::max<std::size_t>(me.view.oldest[w], me.tried);
  if (order == std::memory_order_seq_cst) oldest = std::max(oldest, history.sequential);
  if (me.last_act == Act::write) oldest = history.count - 1;  // a failed compare-exchange
  const std::size_t seen =
      history.count - 1 - choose(oldest < history.count ? history.count - oldest : 1);
  const Value& value = history.values[seen];
  me.view.oldest[w] = static_cast<std::uint8_t>(seen);
  if (acquires(order)) me.view.join(value.view);
  me.seen[me.loads++ % me.seen.size()] = {w, seen};
  if (tracing_) {
    note("load " + name_of(order) + " word " + std::to_string(w) + " = " +
         std::to_string(value.bits) + (seen + 1 < history.count ? " (stale)" : "") + "  " +
         site.file_name() + ":" + std::to_string(site.line()));
  }
  return value.bits;
}

void Explorer::store(const void* word, std::uint64_t former, std::uint64_t value, bool reads,
                     std::memory_order asked, const Site& site) {
  const std::memory_order order =
      effective(reads ? Kind::read_modify_write : Kind::store, asked, site);
  const std::size_t w = index_of(word, former);
  Word& history = words_[w];
  Thread& me = self();
  if (history.count == history.values.size()) history.values.resize(2 * history.count);
  if (history.count == 255) give_up("too many values of one word");
  Value& fresh = history.values[history.count];
  fresh.bits = value;
  fresh.view = {};
  if (reads) {
    const View& before = history.values[history.count - 1].view;
    if (acquires(order)) me.view.join(before);
    fresh.view = before;  // the release sequence goes on
  } else {
    me.unfenced = true;
  }
  me.view.oldest[w] = static_cast<std::uint8_t>(history.count);
  if (releases(order)) {
    fresh.view.join(me.view);
  }
  fresh.view.oldest[w] = static_cast<std::uint8_t>(history.count);
  if (order == std::memory_order_seq_cst) history.sequential = history.count;
  ++history.count;
  if (reads) settle();
  ++me.view.clock[static_cast<std::size_t>(self_)];
  if (tracing_) {
    note((reads ? "read-modify-write " : "store ") + name_of(order) + " word " + std::to_string(w) +
         " = " + std::to_string(value) + "  " + site.file_name() + ":" +
         std::to_string(site.line()));
  }
}

void Explorer::lock(const void* mutex) {
  self().state = State::locking;
  come_to(Act::write, mutex);
  self().state = State::ready;
  settle();
  Lock& lock = locks_[mutex];
  lock.held = true;
  self().view.join(lock.view);
  note("lock");
}

void Explorer::unlock(const void* mutex) {
  come_to(Act::write, mutex);
  Lock& lock = locks_[mutex];
  lock.held = false;
  lock.view = self().view;
  ++self().view.clock[static_cast<std::size_t>(self_)];
  note("unlock");
}

void Explorer::compiler_fence() {
  if (options_.flaw != Flaw::no_compiler_fence) settle();
}

// The compiler has executed exactly the operations that this thread has come to.
void Explorer::settle() {
  Thread& me = self();
  me.unfenced = false;
  me.view.join_words(me.late);
  me.settled.join_words(me.view);
}

void Explorer::barrier_everywhere() {
  if (options_.flaw == Flaw::no_barrier) return;
  settle();
  for (std::size_t t = 0; t < threads_.size(); ++t) {
    if (static_cast<int>(t) == self_) continue;
    Thread& other = threads_[t];
    come_to(Act::barrier, &other);
    const View mine = self().view;
    // All stores of a thread that has ended have arrived.
    if (!other.unfenced || other.state == State::ended || choose(2) == 0) {
      self().view.join_words(other.view);
      other.view.join_words(mine);
    } else {
      self().view.join_words(other.settled);
      other.late.join_words(mine);
    }
    if (tracing_) note("barrier with thread " + std::to_string(t));
  }
}

void Explorer::futex_wait(const void* word, const std::uint32_t& newest, std::uint32_t seen,
                          std::int64_t until_ns) {
  come_to(Act::write, word);
  Thread& me = self();
  settle();
  if (newest != seen && options_.flaw != Flaw::sleeps_unseen) {
    // The kernel compared with the newest value for this thread.
    const std::size_t w = index_of(word, newest);
    me.view.oldest[w] = static_cast<std::uint8_t>(words_[w].count - 1);
    note("futex_wait returns at once");
    return;
  }
  note("sleeps");
  me.state = State::asleep;
  me.until = until_ns;
  pass_on();
  note("wakes");
}

void Explorer::futex_wake_all(const void* word) {
  come_to(Act::write, word);
  settle();
  note("wakes all");
  if (options_.flaw == Flaw::wakes_nobody) return;
  for (Thread& thread : threads_) {
    if (thread.state != State::asleep || thread.word != word) continue;
    thread.state = State::ready;
    thread.act = Act::nothing;
  }
}

void Explorer::sleep(std::int64_t ns) {
  Thread& me = self();
  me.state = State::dozing;
  me.until = now_ + ns;
  come_to(Act::everybody, nullptr);
  me.state = State::ready;
  settle();
  for (std::size_t i = 0; i < std::min(me.loads, me.seen.size()); ++i) {
    const Seen& seen = me.seen[i];
    if (words_[seen.word].count > seen.value + 1) {
      std::uint8_t& oldest = me.view.oldest[seen.word];
      oldest = std::max(oldest, static_cast<std::uint8_t>(seen.value + 1));
    }
  }
  me.loads = 0;
}

void Explorer::touch(const void* memory, std::size_t bytes, bool writes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  Thread& me = self();
  const auto i = static_cast<std::size_t>(self_);
  for (std::uintptr_t at = begin / 4; at < (begin + bytes + 3) / 4; ++at) {
    Cell& cell = cells_[at];
    if (cell.write > me.view.clock[cell.writer] && cell.writer != i) {
      fail("thread " + std::to_string(i) + (writes ? " overwrites" : " reads") +
           " plain memory that thread " + std::to_string(cell.writer) + " is writing");
    }
    if (!writes) {
      cell.read[i] = me.view.clock[i];
      continue;
    }
    for (std::size_t t = 0; t < threads_.size(); ++t) {
      if (t != i && cell.read[t] > me.view.clock[t]) {
        fail("thread " + std::to_string(i) + " overwrites plain memory that thread " +
             std::to_string(t) + " is reading");
      }
    }
    cell.write = me.view.clock[i];
    cell.writer = i;
  }
}

void Explorer::will_read(const void* memory, std::size_t bytes) { touch(memory, bytes, false); }
void Explorer::will_write(const void* memory, std::size_t bytes) { touch(memory, bytes, true); }

}  // namespace rankine::model
