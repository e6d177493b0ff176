#include "bench/rivals/crew.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "bench/rivals/clock.h"
#include "bench/rivals/meeting.h"

namespace rankine::rivals {

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    }
  }
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

bool pin_this_thread(int cpu) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return pthread_setaffinity_np(pthread_self(), sizeof(set), &set) == 0;
}

Crew::Crew(int ranks, std::vector<int> cpus) : cpus_(std::move(cpus)) {
  threads_.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) threads_.emplace_back([this, rank] { live(rank); });
}

Crew::~Crew() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Crew::live(int rank) {
  pin_this_thread(cpus_[static_cast<std::size_t>(rank) % cpus_.size()]);
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return leaving_ || job_ != seen; });
    if (leaving_) return;
    seen = job_;
    const auto* body = body_;
    lock.unlock();
    (*body)(rank);
    lock.lock();
    if (--busy_ == 0) changed_.notify_all();
  }
}

void Crew::run(const std::function<void(int)>& body) {
  std::unique_lock lock(mutex_);
  body_ = &body;
  busy_ = static_cast<int>(threads_.size());
  ++job_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return busy_ == 0; });
}

double Crew::ping_pong_ns() {
  if (ranks() < 2 || cpus_.size() < 2) return 0;
  constexpr int kSeries = 7;
  constexpr std::uint64_t kTrips = 500;
  alignas(kLine) static std::atomic<std::uint64_t> ball;
  ball.store(0);
  Ticks least = ~Ticks{0};
  run([&](int rank) {
    if (rank > 1) return;
    std::uint64_t value = 0;
    for (int series = 0; series < kSeries; ++series) {
      const Ticks begin = ticks_now();
      for (std::uint64_t trip = 0; trip < kTrips; ++trip) {
        if (rank == 0) ball.store(value + 1, std::memory_order_release);
        while (ball.load(std::memory_order_acquire) != value + 1 + (rank == 0 ? 1u : 0u)) {
        }
        if (rank == 1) ball.store(value + 2, std::memory_order_release);
        value += 2;
      }
      if (rank == 0) least = std::min(least, ticks_now() - begin);
    }
  });
  return static_cast<double>(least) * nanoseconds_per_tick() / (2 * kTrips);
}

}  // namespace rankine::rivals
