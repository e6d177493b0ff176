#include "engine/base/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace rankine {
namespace {

std::atomic<int> helping{0};  // threads of all loops, without the callers

bool take_core(int cores) {
  int now = helping.load(std::memory_order_relaxed);
  while (now < cores - 1) {
    if (helping.compare_exchange_weak(now, now + 1, std::memory_order_relaxed)) return true;
  }
  return false;
}

class Loop {
 public:
  Loop(std::size_t count, const std::function<void(std::size_t)>& body)
      : count_(count), body_(body) {}

  void run(std::size_t most_threads, int cores) {
    do {
      while (helpers_.size() + 1 < most_threads && next_ + 1 < count_ && take_core(cores)) {
        try {
          helpers_.emplace_back([this] {
            while (run_next()) {
            }
            helping.fetch_sub(1, std::memory_order_relaxed);
          });
        } catch (const std::system_error&) {  // this thread makes all further calls
          helping.fetch_sub(1, std::memory_order_relaxed);
          most_threads = 0;
        }
      }
    } while (run_next());
    helpers_.clear();  // joins
    if (error_) std::rethrow_exception(error_);
  }

 private:
  bool run_next() {
    const std::size_t i = next_.fetch_add(1, std::memory_order_relaxed);
    if (i >= count_) return false;
    try {
      body_(i);
    } catch (...) {
      next_ = count_;
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
    return true;
  }

  const std::size_t count_;
  const std::function<void(std::size_t)>& body_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::exception_ptr error_;  // guarded by the mutex while helpers run
  std::vector<std::jthread> helpers_;
};

}  // namespace

int usable_cores() noexcept {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) return CPU_COUNT(&mask);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void parallel_for(std::size_t count, const std::function<void(std::size_t)>& body,
                  int most_threads) {
  const int cores = usable_cores();
  const int most = most_threads > 0 ? std::min(most_threads, cores) : cores;
  Loop(count, body).run(static_cast<std::size_t>(most), cores);
}

void on_threads(int count, const std::function<void(int)>& body,
                const std::function<void()>& director) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
  if (director) director();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace rankine
