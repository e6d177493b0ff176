// A barrier for the measuring ranks: the last to arrive does what must be done by one, then all go
// on at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "engine/run/wait.h"

namespace rankine::tools {

class Meeting {
 public:
  // spins: how often a waiting rank looks before it begins to yield its core; few where ranks
  // outnumber cores.
  Meeting(int ranks, int spins) : ranks_(static_cast<std::uint32_t>(ranks)), spins_(spins) {}

  // Calls last() on the rank that arrives last; what it writes all ranks see. False: stopped.
  template <class Last>
  bool arrive(const Last& last) {
    const std::uint32_t turn = turn_.load(std::memory_order_relaxed);  // ours until all are here
    // Acquire: the last sees what the others wrote. Release: pairs with that.
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == ranks_) {
      last();
      arrived_.store(0, std::memory_order_relaxed);
      turn_.store(turn + 1, std::memory_order_release);  // pairs with the loop below
      return !stopped_.load(std::memory_order_relaxed);
    }
    // Acquire: pairs with the last rank's store.
    for (int i = 0; turn_.load(std::memory_order_acquire) == turn; ++i) {
      if (stopped_.load(std::memory_order_relaxed)) return false;
      if (i < spins_) {
        pause_cpu();
      } else {
        std::this_thread::yield();
      }
    }
    return !stopped_.load(std::memory_order_relaxed);
  }
  bool arrive() {
    return arrive([] {});
  }

  // Nobody waits here any more, now and for ever. From any thread.
  void stop() { stopped_.store(true, std::memory_order_relaxed); }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

 private:
  const std::uint32_t ranks_;
  const int spins_;
  alignas(64) std::atomic<std::uint32_t> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> turn_{0};
  alignas(64) std::atomic<bool> stopped_{false};
};

}  // namespace rankine::tools
