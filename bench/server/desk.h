// Many clients of one service: each waits on a thread of its own, and one clerk talks to the ranks.
#pragma once

#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "bench/server/service.h"
#include "engine/base/status.h"

namespace rankine::server {

class Desk {
 public:
  explicit Desk(const Hire& hire);
  // Nobody may wait any more.
  ~Desk();

  // The tokens of the answer. `request.id` is the desk's to choose; else it is as request.h says.
  // Thread-safe. Throws Error (rank_lost) where the ranks were lost meanwhile.
  std::vector<int> answer(const Request& request);

 private:
  // A value, not an exception: who waits and the clerk would share one, and free it on two threads.
  using Answer = std::promise<Result<std::vector<int>>>;
  struct Waiting {
    std::vector<int> tokens;
    Answer answer;
  };

  void work();
  void submit_new();
  void take(const Event& event);

  Service service_;  // the clerk's
  std::map<int, Waiting> waiting_;
  std::mutex mutex_;  // of what has come and is not submitted
  std::vector<std::pair<Request, Answer>> come_;
  std::atomic<bool> closes_{false};
  std::thread clerk_;
};

}  // namespace rankine::server
