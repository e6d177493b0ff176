#include "engine/api/tuning/hardware.h"

#include <fstream>

#include "engine/api/version.h"
#include "engine/run/kernels/reduce.h"
#include "numa/topology.h"

namespace rankine {

std::string cpu_model() {
  std::ifstream stream("/proc/cpuinfo");
  for (std::string line; std::getline(stream, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown CPU";
}

Hardware read_hardware() {
  const Topology topology = Topology::detect();
  return {.cpu = cpu_model(),
          .cores = topology.cores(),
          .packages = topology.packages(),
          .numa_nodes = static_cast<int>(topology.nodes().size()),
          .l3_groups = topology.l3_groups(),
          .l1d = topology.caches().l1d,
          .l2 = topology.caches().l2,
          .l3 = topology.caches().l3,
          .isa = std::string(name_of(best_isa())),
          .version = std::string(kVersion)};
}

std::optional<std::string> difference(const Hardware& there, const Hardware& here) {
  std::optional<std::string> found;
  const auto compare = [&found](const char* name, const auto& a, const auto& b) {
    if (found || a == b) return;
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(a)>>) {
      found = std::string(name) + " is " + std::to_string(a) + " there and " + std::to_string(b) +
              " here";
    } else {
      found = std::string(name) + " is '" + a + "' there and '" + b + "' here";
    }
  };
  compare("cpu", there.cpu, here.cpu);
  compare("cores", there.cores, here.cores);
  compare("packages", there.packages, here.packages);
  compare("numa_nodes", there.numa_nodes, here.numa_nodes);
  compare("l3_groups", there.l3_groups, here.l3_groups);
  compare("l1d", there.l1d, here.l1d);
  compare("l2", there.l2, here.l2);
  compare("l3", there.l3, here.l3);
  compare("isa", there.isa, here.isa);
  compare("version", there.version, here.version);
  return found;
}

}  // namespace rankine
