#include "engine/run/time_slice.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <optional>

namespace rankine {
namespace {

// The first version of the kernel's struct sched_attr, which glibc 2.36 does not declare and which
// <linux/sched/types.h> declares beside a second sched_param.
struct Attributes {
  std::uint32_t bytes = sizeof(Attributes);
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0;  // the slice, where the policy has slices
  std::uint64_t deadline_ns = 0, period_ns = 0;
};
static_assert(sizeof(Attributes) == 48);

// Of the calling thread, where it has slices.
std::optional<Attributes> attributes_with_slice() noexcept {
  Attributes found;
  if (syscall(SYS_sched_getattr, 0, &found, sizeof(found), 0) != 0) return std::nullopt;
  const bool has_slices = found.policy == SCHED_OTHER || found.policy == SCHED_BATCH;
  // Kernels before 6.12 leave it 0.
  if (!has_slices || found.runtime_ns == 0) return std::nullopt;
  return found;
}

}  // namespace

std::int64_t time_slice_ns() noexcept {
  const auto found = attributes_with_slice();
  return found ? static_cast<std::int64_t>(found->runtime_ns) : 0;
}

void shorten_time_slice() noexcept {
  auto wanted = attributes_with_slice();
  if (!wanted || wanted->runtime_ns <= kShortSliceNs) return;
  wanted->runtime_ns = kShortSliceNs;
  syscall(SYS_sched_setattr, 0, &*wanted, 0);  // refused: it stays as long as it was
}

}  // namespace rankine
