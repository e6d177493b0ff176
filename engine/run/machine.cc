#include "engine/run/machine.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <ctime>
#include <thread>

namespace rankine {

void sleep_ns(std::int64_t ns) { std::this_thread::sleep_for(std::chrono::nanoseconds(ns)); }

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

KnownThread ask_thread_id() { return {count_forks(), static_cast<int>(syscall(SYS_gettid))}; }

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

}  // namespace rankine
