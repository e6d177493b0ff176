#include "engine/run/machine.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <ctime>
#include <optional>
#include <thread>

#include "engine/run/process.h"

namespace rankine {

void sleep_ns(std::int64_t ns) { std::this_thread::sleep_for(std::chrono::nanoseconds(ns)); }

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

constinit thread_local std::uint64_t known_thread = 0;

std::uint64_t ask_thread() {
  const std::uint64_t forks = count_forks();  // from now on a fork sets known_thread to 0
  return known_thread = forks << 32 | static_cast<std::uint32_t>(syscall(SYS_gettid));
}

bool thread_has_ended(int id, int process) {
  const int of = process != 0 ? process : getpid();
  return id != 0 && syscall(SYS_tgkill, of, id, 0) != 0 && errno == ESRCH;
}

namespace {

constexpr int barrier_of(Threads whose) {
  return whose == Threads::of_this_process ? MEMBARRIER_CMD_PRIVATE_EXPEDITED
                                           : MEMBARRIER_CMD_GLOBAL_EXPEDITED;
}
constexpr int registration_of(Threads whose) {
  return whose == Threads::of_this_process ? MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED
                                           : MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
}

int futex_operation(int operation, Threads whose) {
  return whose == Threads::of_this_process ? operation | FUTEX_PRIVATE_FLAG : operation;
}

}  // namespace

bool membarrier_available(Threads whose) {
  const long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  return commands > 0 && (commands & barrier_of(whose)) != 0 &&
         syscall(SYS_membarrier, registration_of(whose), 0, 0) == 0;
}

void barrier_everywhere(Threads whose) { syscall(SYS_membarrier, barrier_of(whose), 0, 0); }

void futex_wait(const Atomic<std::uint32_t>& word, std::uint32_t seen, std::int64_t until_ns,
                Threads whose) {
  shorten_time_slice_once();
  const timespec until{until_ns / 1'000'000'000, until_ns % 1'000'000'000};
  // WAIT_BITSET takes an absolute time of the monotonic clock.
  syscall(SYS_futex, &word, futex_operation(FUTEX_WAIT_BITSET, whose), seen, &until, nullptr,
          FUTEX_BITSET_MATCH_ANY);
}

void futex_wake_all(const Atomic<std::uint32_t>& word, Threads whose) {
  syscall(SYS_futex, &word, futex_operation(FUTEX_WAKE, whose), 0x7fffffff, nullptr, nullptr, 0);
}

std::atomic<std::uint32_t> fork_count{0};

std::uint32_t count_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] {
    fork_count.fetch_add(1, std::memory_order_relaxed);
    known_thread = 0;
  });
  static_cast<void>(registered);
  return fork_count.load(std::memory_order_relaxed);
}

namespace {

// The first version of the kernel's struct sched_attr, which glibc 2.36 does not declare and which
// <linux/sched/types.h> declares beside a second sched_param.
struct Attributes {
  std::uint32_t bytes = sizeof(Attributes);
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0;  // the slice, if the policy has slices
  std::uint64_t deadline_ns = 0, period_ns = 0;
};
static_assert(sizeof(Attributes) == 48);

// The attributes of the calling thread, if its policy has slices.
std::optional<Attributes> attributes_with_slice() noexcept {
  Attributes found;
  if (syscall(SYS_sched_getattr, 0, &found, sizeof(found), 0) != 0) return std::nullopt;
  const bool has_slices = found.policy == SCHED_OTHER || found.policy == SCHED_BATCH;
  // Kernels before 6.12 leave it at 0.
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
  syscall(SYS_sched_setattr, 0, &*wanted, 0);  // on refusal the slice keeps its length
}

}  // namespace rankine
