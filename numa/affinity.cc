#include "numa/affinity.h"

#include <sched.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "numa/cpu_list.h"
#include "numa/system_calls.h"

namespace rankine {
namespace {

// cpu_set_t holds 1024 CPUs; the kernel refuses to fill a mask that is shorter than its own, so
// ours is the longest.
using Mask = std::array<cpu_set_t, kMaxCpus / CPU_SETSIZE>;

Mask empty_mask() {
  Mask mask;
  for (cpu_set_t& part : mask) CPU_ZERO(&part);
  return mask;
}

// 0, or the errno.
int read_mask(Mask& mask, int thread) noexcept {
  return system_calls().sched_getaffinity(thread, sizeof(mask), mask.data()) == 0 ? 0 : errno;
}

}  // namespace

std::vector<int> allowed_cpus(int thread) {
  Mask mask = empty_mask();
  std::vector<int> cpus;
  if (read_mask(mask, thread) != 0) return cpus;
  for (int cpu = 0; cpu < kMaxCpus; ++cpu) {
    if (CPU_ISSET(cpu % CPU_SETSIZE, &mask[static_cast<std::size_t>(cpu / CPU_SETSIZE)]))
      cpus.push_back(cpu);
  }
  return cpus;
}

namespace {

struct Pin {
  int cpu = -1;
  std::vector<int> before;
};
Pin& pin_of_this_thread() {
  thread_local Pin pin;
  return pin;
}

}  // namespace

std::vector<int> cpus_before_pin() {
  std::vector<int> cpus = allowed_cpus();
  const Pin& pin = pin_of_this_thread();
  return cpus.size() == 1 && cpus.front() == pin.cpu ? pin.before : cpus;
}

void remember_pin(int cpu, std::vector<int> before) noexcept {
  Pin& pin = pin_of_this_thread();
  pin.cpu = cpu;
  pin.before = std::move(before);
}

int affinity_error() noexcept {
  Mask mask = empty_mask();
  return read_mask(mask, 0);
}

int set_allowed_cpus(const int* cpus, int count) noexcept {
  Mask mask = empty_mask();
  for (int i = 0; i < count; ++i) {
    const int cpu = cpus[i];
    if (cpu < 0 || cpu >= kMaxCpus) continue;
    CPU_SET(cpu % CPU_SETSIZE, &mask[static_cast<std::size_t>(cpu / CPU_SETSIZE)]);
  }
  return system_calls().sched_setaffinity(0, sizeof(mask), mask.data()) == 0 ? 0 : errno;
}

}  // namespace rankine
