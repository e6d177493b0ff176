// What makes one machine's measurements worthless on another.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace rankine {

struct Hardware {
  std::string cpu;  // "AMD EPYC 9B45", or "unknown CPU"
  int cores = 0;    // of the machine, also where this process may use fewer
  int packages = 0, numa_nodes = 0, l3_groups = 0;
  std::size_t l1d = 0, l2 = 0, l3 = 0;  // bytes; 0: unknown
  std::string isa;                      // of the kernels: "avx512_bf16"
  std::string version;                  // of Rankine

  bool operator==(const Hardware&) const = default;
};

// This machine. Takes milliseconds.
Hardware read_hardware();

std::string cpu_model();  // of /proc/cpuinfo

// The first thing in which they differ, as "cores is 16 there and 2 here"; nullopt: nothing.
std::optional<std::string> difference(const Hardware& there, const Hardware& here);

}  // namespace rankine
