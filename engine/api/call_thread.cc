#include "engine/api/call_thread.h"

#include <utility>

#include "numa/cancel_state.h"

namespace rankine {

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

}  // namespace rankine
