#include "engine/exec/fork_count.h"

#include <pthread.h>

namespace rankine {

std::atomic<std::uint32_t> fork_count{0};

std::uint32_t count_forks() {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { fork_count.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(registered);
  return fork_count.load(std::memory_order_relaxed);
}

}  // namespace rankine
