// FoundMachine: the parts of a machine as a reader finds them, for Topology (topology.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "numa/topology.h"

namespace rankine {

// CPUs with equal numbers of a part share the part.
struct FoundCpu {
  int number;  // the operating system's
  std::uint64_t core, package;
  std::optional<std::uint64_t> l3;
  std::size_t node;  // index of its home: the node of its memory
  CacheSizes caches;
  int speed;
};

struct FoundMachine {
  std::vector<FoundCpu> cpus;   // neighbours are neighbours in the machine; empty: none found
  std::vector<NumaNode> nodes;  // their `cpus` are empty
};

// Reads the kernel's files under <root>/sys/devices. Knows all that Topology holds.
FoundMachine read_sys(const std::string& root);

}  // namespace rankine
