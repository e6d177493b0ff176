#include "engine/api/c/registry_lock.h"

#include <pthread.h>

namespace rankine {

std::atomic<int> handlers_looking{0};

std::mutex& registry_lock() {
  static std::mutex lock;
  static const int registered =
      pthread_atfork([] { lock.lock(); }, [] { lock.unlock(); },
                     [] {
                       handlers_looking.store(0, std::memory_order_relaxed);
                       lock.unlock();
                     });
  static_cast<void>(registered);
  return lock;
}

}  // namespace rankine
