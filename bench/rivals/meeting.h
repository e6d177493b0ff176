// Where the ranks of one contender meet around timed calls. Ranks are threads of the driver or
// processes of an MPI job: a Meeting holds no address, so it works in a shared mapping too, and
// every contender has the same barrier with the same skew. Header only, also compiled by mpicxx.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "bench/rivals/clock.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rankine::rivals {

inline constexpr int kMaxRanks = 64;
inline constexpr int kMaxCalls = 4096;  // in one batch whose calls are timed one by one
inline constexpr std::size_t kLine =
    128;  // two cache lines, because hardware fetches them in pairs

inline void pause_cpu() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// Waits while ranks have a core each: PAUSE. Where they share cores: a few probes, then the core
// goes to somebody else.
class Patience {
 public:
  explicit Patience(bool crowded) noexcept : crowded_(crowded) {}
  void wait() noexcept {
    if (crowded_ && ++probes_ > 4) {
      sched_yield();
    } else {
      pause_cpu();
    }
  }

 private:
  bool crowded_;
  int probes_ = 0;
};

struct Meeting {
  struct alignas(kLine) Seat {
    std::atomic<std::uint64_t> arrived{0};
    Ticks whole_batch = 0;        // written by the seat's rank, read by rank 0 after a barrier
    std::uint64_t wrong = 0;      // likewise
    Ticks calls[kMaxCalls] = {};  // likewise
  };

  int ranks = 0;
  bool crowded = false;  // ranks share cores
  Seat seats[kMaxRanks];

  // Nobody leaves before everybody has come.
  void barrier(int rank) noexcept {
    const std::uint64_t round = seats[rank].arrived.load(std::memory_order_relaxed) + 1;
    seats[rank].arrived.store(round, std::memory_order_release);  // pairs with the acquire below
    for (int peer = 0; peer < ranks; ++peer) {
      Patience patience(crowded);
      while (seats[peer].arrived.load(std::memory_order_acquire) < round) patience.wait();
    }
  }
};

}  // namespace rankine::rivals
