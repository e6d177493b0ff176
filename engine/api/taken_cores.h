// The CPUs on which this process's teams have pinned their ranks, and those where threads make
// progress for ranks (progress_thread.h), so that the next team goes elsewhere where it can.
#pragma once

#include <vector>

namespace rankine {

// Those CPUs are taken for as long as this lives. Thread-safe; of this process: a forked child
// begins with none taken. May throw std::bad_alloc.
class TakenCores {
 public:
  explicit TakenCores(std::vector<int> cpus);
  ~TakenCores();
  TakenCores(const TakenCores&) = delete;
  TakenCores& operator=(const TakenCores&) = delete;

  // All that are taken now.
  static std::vector<int> all();

 private:
  const std::vector<int> cpus_;
};

}  // namespace rankine
