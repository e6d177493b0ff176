#include "engine/api/c/registry_lock.h"

#include <pthread.h>

namespace rankine {

std::mutex& registry_lock() {
  static std::mutex lock;
  static const int registered =
      pthread_atfork([] { lock.lock(); }, [] { lock.unlock(); }, [] { lock.unlock(); });
  static_cast<void>(registered);
  return lock;
}

}  // namespace rankine
