// The machine layer gives the executor atomic words, a lock, the clock, and the kernel's calls for
// waiting. The concurrent code (rank_control, wait, mailbox, interpret) communicates between
// threads only through this layer.
//
// A build that defines RANKINE_MACHINE compiles the same sources against the header of that name,
// where a test controls every function: a model checker explores the behaviours that the C++ memory
// model allows, and a simulation runs all ranks on one thread in virtual time. In production each
// function is the plain one, and the annotations at the end (will_read, will_write, fault_point) do
// nothing.
#pragma once

#ifdef RANKINE_MACHINE
#include RANKINE_MACHINE
#else

#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "engine/run/process.h"

namespace rankine {

template <class T>
using Atomic = std::atomic<T>;
using Mutex = std::mutex;

// The compiler moves no access across this fence; the processor may.
inline void compiler_fence() { std::atomic_signal_fence(std::memory_order_seq_cst); }

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // most cores ignore YIELD
#endif
}
// Waits until this core's stores are visible to others. Without it, a clock reading would leave out
// the slowest part of stores past the caches, for which others then wait.
inline void wait_for_stores() {
#if defined(__x86_64__)
  __builtin_ia32_mfence();
#elif defined(__aarch64__)
  asm volatile("dsb ishst" ::: "memory");
#endif
}
inline void yield_cpu() {
  shorten_time_slice_once();
  sched_yield();
}
void sleep_ns(std::int64_t ns);

// Reads the monotonic clock.
std::int64_t now_ns();

// The calling thread, once it has been read: its id in the kernel and, above it, the forks before
// it (process.h), so that no thread of a child equals one of its parent. 0: not yet read; a fork
// sets it to 0 in the child, whose only thread has a new id. constinit: no access checks for
// initialisation. initial-exec: no access calls a function in a shared library either.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local std::uint64_t known_thread;
std::uint64_t ask_thread();
inline std::uint64_t this_thread() { return known_thread != 0 ? known_thread : ask_thread(); }
inline int thread_id() { return static_cast<int>(this_thread()); }
inline constexpr std::uint64_t kNoThread = ~std::uint64_t{0};  // not equal to any thread
// True if the thread with that id has ended. `process`: the id of another process of the same user;
// 0: this one. The kernel may reuse an id, so this may miss an end, but it never reports a false
// one. False if `id` is 0 (unknown).
bool thread_has_ended(int id, int process = 0);

// The threads that sleep on a word and wake each other, and that a barrier reaches.
enum class Threads : bool { of_this_process, of_all_processes };

// Registers the process for membarrier, alone or among all; false if the kernel refuses. The kernel
// is asked each time: the caller may be a forked child, or a process that has since forbidden
// itself the call. 1 us.
bool membarrier_available(Threads whose = Threads::of_this_process);
// A full barrier on every running thread of the process, or of all registered processes. Call only
// after membarrier_available() with this argument.
void barrier_everywhere(Threads whose = Threads::of_this_process);

// futex(2) on a 32-bit word: sleeps while the word is `seen`, until rung or until that time. After
// any return the caller must look again.
void futex_wait(const Atomic<std::uint32_t>& word, std::uint32_t seen, std::int64_t until_ns,
                Threads whose = Threads::of_this_process);
void futex_wake_all(const Atomic<std::uint32_t>& word, Threads whose = Threads::of_this_process);

// A parked rank looks about at least this often: no wake_futex rings when a peer enters another
// collective or when a peer's thread ends.
inline std::int64_t look_about_ns() { return 50'000'000; }

// Plain memory that ranks hand to one another: this thread is about to read or write it.
inline void will_read(const void*, std::size_t) {}
inline void will_write(const void*, std::size_t) {}

// A point where a test may delay or stop a rank.
inline void fault_point() {}

}  // namespace rankine

#endif
