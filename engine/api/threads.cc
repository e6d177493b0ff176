#include "engine/api/threads.h"

#include <pthread.h>

#include <algorithm>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "engine/api/member_state.h"
#include "engine/run/machine.h"
#include "engine/run/process.h"
#include "numa/placement.h"
#include "numa/refusals.h"

namespace rankine {
namespace {

// Returns the process's single T. A forked child gets a new one and leaves its parent's alone,
// because that may be half changed or locked for ever.
// May throw std::bad_alloc at its first call in a process. The call is thread-safe; the value is
// only as thread-safe as T.
template <class T>
T& process_wide() {
  struct Holder {
    HomeProcess home;
    T value;
  };
  static Atomic<Holder*> current{nullptr};
  Holder* holder = current.load(std::memory_order_acquire);  // pairs with the exchange
  while (holder == nullptr || !holder->home.is_this()) {
    auto made = std::make_unique<Holder>();
    if (current.compare_exchange_strong(holder, made.get(), std::memory_order_acq_rel)) {
      holder = made.release();
    }
  }
  return holder->value;
}

constexpr int kMostTries = 1000;

Atomic<int> threads{0};

struct Book {
  std::mutex mutex;
  std::map<int, int> members;  // number of members by thread
};

// A relaxed store: readers see the right number sooner or later.
void tell(const Book& book) {
  threads.store(static_cast<int>(book.members.size()), std::memory_order_relaxed);
}

}  // namespace

bool RankThreads::add(int thread) {
  Book& book = process_wide<Book>();
  // allocate before taking the lock, so that the lock is held only briefly
  std::map<int, int> page;
  page.emplace(thread, 0);
  std::unique_lock lock(book.mutex, std::try_to_lock);
  for (int i = 0; !lock.owns_lock() && i < kMostTries; ++i) {
    yield_cpu();
    static_cast<void>(lock.try_lock());
  }
  if (!lock.owns_lock()) return false;
  ++book.members.insert(page.extract(thread)).position->second;
  tell(book);
  return true;
}

void RankThreads::remove(int thread) noexcept {
  Book& book = process_wide<Book>();
  const std::lock_guard lock(book.mutex);
  const auto found = book.members.find(thread);
  if (found == book.members.end()) return;
  if (--found->second == 0) book.members.erase(found);
  tell(book);
}

const Atomic<int>& RankThreads::count() noexcept { return threads; }

namespace {

struct Taken {
  std::mutex mutex;
  std::multiset<int> cpus;
};

}  // namespace

TakenCores::TakenCores(std::vector<int> cpus) : cpus_(std::move(cpus)) {
  // If there is no memory for all of them, take none: the destructor would not run to release them.
  std::multiset<int> more(cpus_.begin(), cpus_.end());
  Taken& taken = process_wide<Taken>();
  const std::lock_guard lock(taken.mutex);
  taken.cpus.merge(more);
}

TakenCores::~TakenCores() {
  Taken& taken = process_wide<Taken>();
  const std::lock_guard lock(taken.mutex);
  for (const int cpu : cpus_) {
    if (const auto found = taken.cpus.find(cpu); found != taken.cpus.end()) taken.cpus.erase(found);
  }
}

std::vector<int> TakenCores::all() {
  Taken& taken = process_wide<Taken>();
  const std::lock_guard lock(taken.mutex);
  return {taken.cpus.begin(), taken.cpus.end()};
}

CallThread::CallThread(std::function<void()> call)
    : call_(std::move(call)), thread_([this] {
        const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);
        wait_for_turn(Turn::the_calls);
        call_();
        pass_to(Turn::over);
      }) {}

CallThread::~CallThread() { thread_.join(); }

void CallThread::wait_for_turn(Turn turn) {
  std::unique_lock lock(mutex_);
  passed_.wait(lock, [&] { return turn_ == turn; });
}

void CallThread::pass_to(Turn turn) {
  const std::lock_guard lock(mutex_);
  turn_ = turn;
  passed_.notify_all();
}

bool CallThread::go_on() {
  std::unique_lock lock(mutex_);
  if (turn_ == Turn::over) return true;
  turn_ = Turn::the_calls;
  passed_.notify_all();
  passed_.wait(lock, [&] { return turn_ != Turn::the_calls; });
  return turn_ == Turn::over;
}

void CallThread::give_way(int) noexcept {
  pass_to(Turn::ours);
  wait_for_turn(Turn::the_calls);
}

ProgressThread::ProgressThread(int core, const RankControl& rank_control)
    : core_({core}), rank_control_(rank_control) {}

Result<std::shared_ptr<ProgressThread>> ProgressThread::start(int core,
                                                              const RankControl& rank_control) {
  std::shared_ptr<ProgressThread> made(new ProgressThread(core, rank_control));
  std::promise<Enforcement> promise;
  std::future<Enforcement> pin = promise.get_future();
  try {
    made->thread_ = std::thread([pin = std::move(promise), core, self = made.get()]() mutable {
      const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);
      pthread_setname_np(pthread_self(), "rankine-helper");
      const Enforcement pinned = pin_calling_thread(core);
      pin.set_value(pinned);
      if (!pinned.refused()) self->work();
    });
  } catch (const std::system_error& error) {
    return Status(Code::system, std::string("the thread of progress_core: ") + error.what());
  }
  const Enforcement pinned = pin.get();
  if (!pinned.refused()) return made;
  return invalid_argument("progress_core is " + std::to_string(core) + ": " +
                          std::string(pinned.why()));
}

ProgressThread::~ProgressThread() {
  if (!thread_.joinable()) return;
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // a destructor may not be unwound
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

void ProgressThread::serve(const std::shared_ptr<ProgressEngine>& progress_engine) {
  const std::lock_guard lock(mutex_);
  engines_.push_back(progress_engine);
}

void ProgressThread::wake() noexcept {
  const std::lock_guard lock(mutex_);
  if (std::exchange(due_, true)) return;
  changed_.notify_one();
}

std::shared_ptr<ProgressEngine> ProgressThread::engine_at(std::size_t i) noexcept {
  const std::lock_guard lock(mutex_);
  while (!stop_ && i < engines_.size()) {
    if (std::shared_ptr<ProgressEngine> there = engines_[i].lock()) return there;
    std::swap(engines_[i], engines_.back());
    engines_.pop_back();
  }
  return nullptr;
}

Progress ProgressThread::once() noexcept {
  Progress most = Progress::nothing_to_do;
  for (std::size_t i = 0; const std::shared_ptr<ProgressEngine> progress_engine = engine_at(i);
       ++i) {
    most = std::max(most, progress_engine->help());
  }
  return most;
}

void ProgressThread::work() {
  const int self = thread_id();
  bool counted = false;
  for (;;) {
    try {
      if (!counted) counted = RankThreads::add(self);
    } catch (const std::bad_alloc&) {  // tried again when there is more work
    }
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || due_; });
      if (stop_) break;
      due_ = false;
    }
    Idling idling(rank_control_.policy());
    for (Progress made = once(); made != Progress::nothing_to_do; made = once()) {
      if (made == Progress::moved) {
        idling.begin_again();
      } else {
        idling.once();
      }
    }
  }
  if (counted) RankThreads::remove(self);
}

}  // namespace rankine
