// How much memory this process may still take.
#pragma once

#include <cstdint>
#include <string>

namespace rankine::tools {

struct AvailableMemory {
  std::uint64_t bytes = 0;  // 2^63 - 1: nobody tells
  std::string why;          // "MemAvailable of /proc/meminfo"
};

// The least of what the kernel calls available and what the process's memory cgroup (v2 or v1, and
// what a container sees as their root) has left. `root` is put before /proc and /sys.
AvailableMemory available_memory(const std::string& root = "");

}  // namespace rankine::tools
