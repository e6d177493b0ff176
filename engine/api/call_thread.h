// A call that gives way: it is made on a thread of its own which runs only while somebody has told
// it to, up to where it would wait or has ended. So whoever has started it goes on with other
// things, and nothing that the call does (a network's clock, say) needs to know. Two switches of
// threads for every turn: for calls on modelled networks, where speed is no matter.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "engine/run/other_work.h"

namespace rankine {

class CallThread : public OtherWork {
 public:
  // `call` is made at the first turn. Throws std::system_error where there is no thread to be had.
  explicit CallThread(std::function<void()> call);
  // The call has ended.
  ~CallThread() override;

  // It goes on: whether it has ended. For the thread that made this; what either side did before is
  // visible to the other.
  bool go_on();

  void give_way(int turn) noexcept override;

 private:
  enum class Turn : std::uint8_t { ours, the_calls, over };
  void wait_for_turn(Turn turn);
  void pass_to(Turn turn);

  const std::function<void()> call_;
  std::mutex mutex_;
  std::condition_variable passed_;
  Turn turn_ = Turn::ours;
  std::thread thread_;
};

}  // namespace rankine
