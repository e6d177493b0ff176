// A Crew runs the driver's own ranks: threads pinned one per core (in turn, if there are fewer
// cores). They sleep between jobs, so contenders in other processes have the machine for
// themselves. machine_json() describes the machine.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/cli/probe.h"
#include "nlohmann/json.hpp"
#include "numa/cpus.h"

namespace rankine::rivals {

// False: the system refuses, and the thread's affinity is unchanged.
inline bool pin_this_thread(int cpu) noexcept { return set_allowed_cpus(&cpu, 1) == 0; }

class Crew {
 public:
  Crew(int ranks, std::vector<int> cpus);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  int ranks() const noexcept { return static_cast<int>(threads_.size()); }
  const std::vector<int>& cpus() const noexcept { return cpus_; }

  // Calls body(rank) in every rank's thread; returns when all have returned.
  void run(const std::function<void(int)>& body);

  // One-way latency of a cache line between the first two ranks' cores, in ns (LatencyProbe in
  // engine/cli/probe.h). 0 if there are no two ranks on two cores.
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

// Describes the machine for a document: cpu, kernel, caches, cores, time. Call it before you pin
// threads: it reads the calling thread's affinity.
nlohmann::json machine_json();

}  // namespace rankine::rivals
