// A rank detects that it runs in a forked child for the price of a load, and a thread shortens its
// time slice before it yields its core. fork() copies the calling thread only, so the parent's
// other ranks do not exist in the child and a wait for them never ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace rankine {

// Forks between the process that first called count_forks() and this one. Relaxed: a child reads
// what its own fork wrote, before any other thread of it exists.
extern std::atomic<std::uint32_t> fork_count;

// Starts counting fork() and other calls that run pthread_atfork's handlers, not a bare clone
// system call. Returns fork_count. Any thread, any number of times.
std::uint32_t count_forks();

// Time slices: the time for which other threads keep a core that this thread has yielded.
//
// If a core has other work, Linux runs that work until its time slice ends and the timer ticks, 3
// to 4 ms, before it considers a thread that has yielded or been woken: a call among eight ranks on
// two cores took 4 ms beside one busy program, instead of 14 us. A thread with a short slice goes
// on at once while it has had less than its share of the core, which stays unchanged. Any thread
// may ask for a short slice, from Linux 6.12 on (sched_setattr(2), "custom slice"). Nice values and
// policies stay, and policies without slices (real-time ones) are left alone.

// The shortest slice that Linux gives.
inline constexpr std::int64_t kShortSliceNs = 100'000;

// The calling thread's slice. 0: this kernel or the thread's policy has no readable slice.
std::int64_t time_slice_ns() noexcept;

// Shortens the calling thread's slice, if it is long and the kernel allows it. Threads and
// processes that the thread starts later inherit the slice.
void shorten_time_slice() noexcept;

// shorten_time_slice(), once per thread: call it before a yield or sleep.
inline void shorten_time_slice_once() noexcept {
  thread_local constinit bool asked = false;
  if (asked) [[likely]]
    return;
  asked = true;
  shorten_time_slice();
}

// An object that belongs to the process that made it, and not to forked children. A child has none
// of the threads that used the object, and they may have left it half changed or locked. So the
// child leaves it alone and keeps the memory.

// HomeProcess remembers the process that made it; forked children can tell the difference.
class HomeProcess {
 public:
  bool is_this() const noexcept { return fork_count.load(std::memory_order_relaxed) == forks_; }

 private:
  std::uint32_t forks_ = count_forks();
};

template <class T>
struct DeleteAtHome {
  HomeProcess home{};
  void operator()(T* object) const {
    if (home.is_this()) delete object;
  }
};
// As std::unique_ptr, but destroys nothing in a forked child.
template <class T>
using ProcessOwned = std::unique_ptr<T, DeleteAtHome<T>>;

template <class T, class... Arguments>
ProcessOwned<T> make_process_owned(Arguments&&... arguments) {
  return ProcessOwned<T>(new T(std::forward<Arguments>(arguments)...));
}

// make_process_owned() for several owners.
template <class T, class... Arguments>
std::shared_ptr<T> make_shared_at_home(Arguments&&... arguments) {
  return std::shared_ptr<T>(new T(std::forward<Arguments>(arguments)...), DeleteAtHome<T>());
}

}  // namespace rankine
