// The machine below the executor, behind one seam: atomic words, a lock, the clock, and what the
// kernel does for those who wait. The concurrent code (crossbar, wait, mailbox, interpret) uses
// nothing else to talk between threads.
//
// With RANKINE_MODEL defined, the same sources are compiled against tests/models/machine.h, where
// every one of these is under a test's control: a model checker explores what the C++ memory model
// allows, and a simulation runs all ranks on one thread in virtual time. In production each of them
// is the plain thing, and the remarks at the end (will_read, will_write, fault_point) are nothing.
#pragma once

#ifdef RANKINE_MODEL
#include "tests/models/machine.h"
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

// The compiler moves no access across it; the processor may.
inline void compiler_fence() { std::atomic_signal_fence(std::memory_order_seq_cst); }

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}
// Until what this core has stored is where others find it: a clock that is read before leaves out
// what stores past the caches take longest for, and others then wait for.
inline void wait_for_stores() {
#if defined(__x86_64__)
  __builtin_ia32_mfence();
#endif
}
inline void yield_cpu() {
  shorten_time_slice_once();
  sched_yield();
}
void sleep_ns(std::int64_t ns);

// Of the monotonic clock.
std::int64_t now_ns();

// A thread's id in the kernel. After a fork the one thread of the child has another one.
struct KnownThread {
  std::uint32_t forks = ~0U;  // fork_count when it was asked for; ~0: not yet
  int id = 0;
};
KnownThread ask_thread_id();
// The calling thread's id, asked for once per thread and process.
inline int thread_id() {
  thread_local constinit KnownThread known;  // so that no call looks whether it is initialised
  if (known.forks != fork_count.load(std::memory_order_relaxed)) [[unlikely]]
    known = ask_thread_id();
  return known.id;
}
// Whether a thread with that id has ended, of this process or (for its id) of another one of the
// same user. A number may be given out again, so this may miss an end, but it reports none that was
// not. 0: not known, so no.
bool thread_has_ended(int id, int process = 0);

// Whose threads sleep on a word and wake each other there, and whom a barrier reaches.
enum class Threads : bool { of_this_process, of_all_processes };

// Registers the process for membarrier, by itself or among all; false where the kernel refuses.
// Asked anew each time: a forked child, or a process that has refused itself the call since, is
// another one. 1 us.
bool membarrier_available(Threads whose = Threads::of_this_process);
// A full barrier on every running thread of the process, or of all that have registered so. Only
// after membarrier_available() of the same.
void barrier_everywhere(Threads whose = Threads::of_this_process);

// futex(2) on a 32-bit word: sleeps while the word is `seen`, until rung or until that time. Any
// return is a reason to look again.
void futex_wait(const Atomic<std::uint32_t>& word, std::uint32_t seen, std::int64_t until_ns,
                Threads whose = Threads::of_this_process);
void futex_wake_all(const Atomic<std::uint32_t>& word,
                    Threads whose = Threads::of_this_process);

// A parked rank looks about at least this often: nobody rings when a peer enters another
// collective, or when its thread ends.
inline std::int64_t look_about_ns() { return 50'000'000; }

// Plain memory that ranks hand to one another: this thread is about to read it, or to write it.
inline void will_read(const void*, std::size_t) {}
inline void will_write(const void*, std::size_t) {}

// Where a rank may be held up or fall out.
inline void fault_point() {}

}  // namespace rankine

#endif
