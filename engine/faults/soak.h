// A soak: ranks that are processes make calls for a long time, are killed, revoked and replaced,
// shrink and grow, beside other load on the cores; then nothing may have been left behind.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace rankine::faults {

// A run has a warm-up and four quarters. After each of them all ranks destroy their communicators,
// and the process that lives through the whole run counts what it has.
inline constexpr int kSoakPhases = 5;

// What the lasting process has while it has no communicator.
struct SoakCounts {
  std::int64_t blocks = 0;        // of operator new
  std::int64_t mapped_bytes = 0;  // by the engine, for arenas
  std::int64_t descriptors = 0, threads = 0, shared_mappings = 0, address_space = 0;
};
struct SoakCount {
  std::string_view name;
  std::int64_t SoakCounts::*value;
};
inline constexpr SoakCount kSoakCounts[] = {
    {"blocks of operator new", &SoakCounts::blocks},
    {"bytes of arenas", &SoakCounts::mapped_bytes},
    {"descriptors", &SoakCounts::descriptors},
    {"threads", &SoakCounts::threads},
    {"shared mappings", &SoakCounts::shared_mappings},
    {"spans of 16 GiB of address space", &SoakCounts::address_space},
};

// Latencies in seconds.
struct SoakLatencies {
  std::int64_t samples = 0;
  double p50 = 0, p90 = 0, p99 = 0, p999 = 0, most = 0;
};

// `events`: what has happened, by name.
struct SoakEvent {
  std::string_view name;
  std::int64_t count = 0;
};

struct SoakReport {
  std::vector<SoakEvent> events{};
  // By phase: of all-reduces of 32 bytes behind a barrier, and of the ranks' own calls of any kind.
  std::array<SoakLatencies, kSoakPhases> small{}, any{};
  // From a failed call to the shrunken, and from there to the grown communicator.
  SoakLatencies shrinks{}, grows{};
  std::array<SoakCounts, kSoakPhases> counts{};
  std::vector<std::string> broken{};  // broken promises, leaks among them; empty: none
};

struct SoakOptions {
  static constexpr int kMostRanks = 16;
  int ranks = 4;
  double seconds = 1200;  // with the warm-up, a tenth
  std::uint64_t seed = 1;
  int turns = 600;         // from one kill or revocation to the next, on average
  bool other_load = true;  // a process per core that computes half of the time
  // Called about every tenth of a second; false ends the run early, with the counts so far.
  std::function<bool(double seconds, const SoakReport& so_far)> progress{};
};

// Call it in a process without other threads, since it forks. Errors: fork() or mmap() failed.
Result<SoakReport> soak(const SoakOptions& options);

}  // namespace rankine::faults
