// How much memory this process may still take.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace rankine::tools {

struct AvailableMemory {
  std::uint64_t bytes = 0;  // 2^63 - 1: nobody tells
  std::string why;          // "MemAvailable of /proc/meminfo"
};

// The least of what the kernel calls available and what the process's memory cgroup (v2 or v1, and
// what a container sees as their root) has left. `root` is put before /proc and /sys.
AvailableMemory available_memory(const std::string& root = "");

// out_of_memory where less than `needed` and `spare` bytes are available: "2 ranks need 1 GiB of
// buffers; available are ...", for who = "2 ranks" and what = "buffers".
Status check_memory(std::size_t needed, std::string_view what, std::string_view who,
                    std::size_t spare = 0);

}  // namespace rankine::tools
