#include "engine/tools/interrupt.h"

#include <atomic>

namespace rankine::tools {
namespace {

// Says that something came and nothing else, so no order is needed anywhere.
std::atomic<int> came{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler stores to it");

void note(int signal) { came.store(signal, std::memory_order_relaxed); }

void watch(int signal, struct sigaction& before) {
  struct sigaction noting {};
  noting.sa_handler = note;
  noting.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);  // the second one is not noted
  sigaction(signal, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(signal, &noting, nullptr);
}

}  // namespace

int interruption() noexcept { return came.load(std::memory_order_relaxed); }

Exit exit_of_interruption() {
  return interruption() == SIGTERM ? Exit::terminated : Exit::interrupted;
}

InterruptGuard::InterruptGuard() {
  came.store(0, std::memory_order_relaxed);
  watch(SIGINT, on_interrupt_);
  watch(SIGTERM, on_terminate_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &on_interrupt_, nullptr);
  sigaction(SIGTERM, &on_terminate_, nullptr);
}

}  // namespace rankine::tools
