// The driver's own ranks: threads pinned one per core (in turn, where there are fewer cores),
// asleep between jobs, so that contenders in other processes have the machine for themselves.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/cli/probe.h"
#include "nlohmann/json.hpp"

namespace rankine::rivals {

// The cores that this process may use.
std::vector<int> allowed_cpus();

// False where the system refuses; the thread then stays where it was.
bool pin_this_thread(int cpu) noexcept;

class Crew {
 public:
  Crew(int ranks, std::vector<int> cpus);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  int ranks() const noexcept { return static_cast<int>(threads_.size()); }
  const std::vector<int>& cpus() const noexcept { return cpus_; }

  // body(rank) in every rank's thread; returns when all have returned.
  void run(const std::function<void(int)>& body);

  // One-way latency of a cache line between the first two ranks' cores, in ns (latency_probe.h). 0
  // where two ranks do not have two cores.
  double ping_pong_ns();

 private:
  void live(int rank);

  const std::vector<int> cpus_;
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void(int)>* body_ = nullptr;
  std::uint64_t job_ = 0;
  tools::LatencyProbe probe_;
  int busy_ = 0;
  bool leaving_ = false;
  std::vector<std::thread> threads_;
};

// The machine that a measurement was taken on, for its document: cpu, kernel, caches, cores, time.

// To be called before anything is pinned: the calling thread's affinity counts.
nlohmann::json machine_json();

}  // namespace rankine::rivals
