#include "bench/rivals/crew.h"

#include <sys/utsname.h>

#include <string>
#include <utility>

#include "engine/cli/machine.h"

namespace rankine::rivals {

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
  double ns = 0;
  run([&](int rank) {
    if (rank > 1) return;
    const double mine = probe_.play(rank);
    if (rank == 0) ns = mine;
  });
  return ns;
}

nlohmann::json machine_json() {
  const tools::MachineReport machine = tools::read_machine();
  struct utsname system {};
  uname(&system);
  const CacheSizes& caches = machine.topology.caches();
  return {{"cpu", machine.cpu},
          {"kernel", std::string(system.sysname) + " " + system.release},
          {"summary", machine.topology.summary()},
          {"cores", machine.budget.why},
          {"l1d_bytes", caches.l1d},
          {"l2_bytes", caches.l2},
          {"l3_bytes", caches.l3},
          {"time", tools::utc_now()}};
}

}  // namespace rankine::rivals
