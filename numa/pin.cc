#include "numa/pin.h"

#include <fmt/core.h>

#include <cstring>
#include <string>
#include <utility>

#include "numa/affinity.h"
#include "numa/cpu_list.h"
#include "numa/warnings.h"

namespace rankine {
namespace {

Enforcement refuse(const char* key, int error, const std::string& why) {
  warn_once(key, why);
  return Enforcement::refusal(error, why);
}

std::string where_it_runs() {
  const std::vector<int> cpus = allowed_cpus();
  return cpus.empty() ? "runs where the kernel puts it" : "runs on CPUs " + format_cpu_list(cpus);
}

}  // namespace

Enforcement pin_calling_thread(int cpu, const std::vector<int>& fallback) noexcept {
  if (cpu < 0) return {};
  // Where the kernel does not tell which CPUs are ours, the pin could leave them, and whether it
  // holds could not be told either.
  if (const int error = affinity_error(); error != 0) {
    try {
      return refuse("numa.pin", error,
                    fmt::format("thread not pinned to CPU {}: sched_getaffinity: {}; {}", cpu,
                                std::strerror(error), where_it_runs()));
    } catch (...) {
      return Enforcement::refusal(error, "sched_getaffinity refused");
    }
  }
  std::vector<int> before;
  try {
    before = cpus_before_pin();
  } catch (...) {  // no memory: it is not remembered
  }
  // A number that no kernel knows makes an empty mask, which is EINVAL too.
  const int error = set_allowed_cpus(&cpu, 1);
  try {
    // Some sandboxes accept the call and do nothing, so look.
    if (error == 0 && allowed_cpus() == std::vector<int>{cpu}) {
      if (!before.empty()) remember_pin(cpu, std::move(before));
      return Enforcement::done();
    }
    if (!fallback.empty()) set_allowed_cpus(fallback.data(), static_cast<int>(fallback.size()));
    const std::string cause = error == 0 ? "accepted but without effect" : std::strerror(error);
    return refuse("numa.pin", error,
                  fmt::format("thread not pinned to CPU {}: sched_setaffinity: {}; {}", cpu, cause,
                              where_it_runs()));
  } catch (...) {  // no memory for the text; the mask is what counts
    return error == 0 ? Enforcement::done()
                      : Enforcement::refusal(error, "sched_setaffinity refused");
  }
}

Enforcement pin_calling_thread(const Topology& topology, const RankPlace& place) noexcept {
  if (place.cpu < 0) return {};
  try {
    if (!topology.is_this_system()) {
      return refuse(
          "numa.foreign_topology", 0,
          fmt::format("threads not pinned: the topology does not describe this machine ({})",
                      topology.source()));
    }
    return pin_calling_thread(place.cpu, topology.os_cpus());
  } catch (...) {
    return topology.is_this_system()
               ? pin_calling_thread(place.cpu)
               : Enforcement::refusal(0, "the topology does not describe this machine");
  }
}

void move_calling_thread(int cpu) noexcept {
  try {
    const std::vector<int> cpus = allowed_cpus();
    if (cpus.empty() || set_allowed_cpus(&cpu, 1) != 0) return;
    set_allowed_cpus(cpus.data(), static_cast<int>(cpus.size()));
  } catch (...) {  // no memory: it stays where it is
  }
}

}  // namespace rankine
