// A number of threads that stay from one run to the next: for tests that call so often that
// starting threads would take longer than the calls, and beside other work a tick of the kernel's
// each time.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/run/process.h"

namespace rankine {

class StandingThreads {
 public:
  explicit StandingThreads(int count) {
    shorten_time_slice_once();  // of who waits for them, from whom they have it
    for (int i = 0; i < count; ++i) threads_.emplace_back([this, i] { serve(i); });
  }
  ~StandingThreads() {
    {
      const std::lock_guard lock(mutex_);
      job_ = nullptr;
      ++runs_;
    }
    begun_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  StandingThreads(const StandingThreads&) = delete;
  StandingThreads& operator=(const StandingThreads&) = delete;

  // Calls f(i) on thread i, of all threads at once, and returns when all have. One run at a time.
  void run(const std::function<void(int)>& f) {
    std::unique_lock lock(mutex_);
    job_ = &f;
    busy_ = threads_.size();
    ++runs_;
    begun_.notify_all();
    ended_.wait(lock, [this] { return busy_ == 0; });
  }

 private:
  void serve(int i) {
    std::unique_lock lock(mutex_);
    for (std::uint64_t seen = 0;;) {
      begun_.wait(lock, [&] { return runs_ != seen; });
      seen = runs_;
      if (job_ == nullptr) return;
      lock.unlock();
      (*job_)(i);
      lock.lock();
      if (--busy_ == 0) ended_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable begun_, ended_;
  // Guarded by mutex_.
  std::uint64_t runs_ = 0;
  const std::function<void(int)>* job_ = nullptr;  // nullptr in the end
  std::size_t busy_ = 0;                           // threads that are in the job
  std::vector<std::thread> threads_;
};

}  // namespace rankine
