#include "engine/api/progress_thread.h"

#include <pthread.h>

#include <algorithm>
#include <future>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "engine/api/agenda.h"
#include "engine/api/idling.h"
#include "engine/api/rank_threads.h"
#include "engine/run/machine.h"
#include "numa/cancel_state.h"
#include "numa/pin.h"

namespace rankine {

ProgressThread::ProgressThread(int core, const Crossbar& crossbar)
    : core_({core}), crossbar_(crossbar) {}

Result<std::shared_ptr<ProgressThread>> ProgressThread::start(int core, const Crossbar& crossbar) {
  std::shared_ptr<ProgressThread> made(new ProgressThread(core, crossbar));
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

void ProgressThread::serve(const std::shared_ptr<Agenda>& agenda) {
  const std::lock_guard lock(mutex_);
  agendas_.push_back(agenda);
}

void ProgressThread::wake() noexcept {
  const std::lock_guard lock(mutex_);
  if (std::exchange(due_, true)) return;
  changed_.notify_one();
}

std::shared_ptr<Agenda> ProgressThread::agenda_at(std::size_t i) noexcept {
  const std::lock_guard lock(mutex_);
  while (!stop_ && i < agendas_.size()) {
    if (std::shared_ptr<Agenda> there = agendas_[i].lock()) return there;
    std::swap(agendas_[i], agendas_.back());
    agendas_.pop_back();
  }
  return nullptr;
}

Progress ProgressThread::once() noexcept {
  Progress most = Progress::nothing_to_do;
  for (std::size_t i = 0; const std::shared_ptr<Agenda> agenda = agenda_at(i); ++i) {
    most = std::max(most, agenda->help());
  }
  return most;
}

void ProgressThread::work() {
  const int self = thread_id();
  bool counted = false;
  for (;;) {
    try {
      if (!counted) counted = RankThreads::add(self);
    } catch (const std::bad_alloc&) {  // asked again when there is more to do
    }
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || due_; });
      if (stop_) break;
      due_ = false;
    }
    Idling idling(crossbar_.policy());
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
