// How to notice that one is in a forked child, for the price of a load: fork() copies the calling
// thread only, so ranks of the parent do not exist in the child and no wait for them would end.
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

// Starts counting (fork() and whatever runs pthread_atfork's handlers; not a bare clone system
// call). Returns fork_count. Any thread, any number of times.
std::uint32_t count_forks();

// How long others keep a core that a thread has given away.
//
// Where other work is on a core, Linux lets it run until its time slice ends and the timer ticks, 3
// to 4 ms, before whoever has yielded or been woken is looked at again: a call among eight ranks on
// two cores took 4 ms beside one busy program, instead of 14 us. A thread with a short slice goes
// on at once while it has had less than its share of the core, which remains what it was. Any
// thread may ask for it, from Linux 6.12 on (sched_setattr(2), "custom slice"); nice values and
// policies stay, and those that have no slices (real-time ones) are left alone.

// The shortest that Linux gives.
inline constexpr std::int64_t kShortSliceNs = 100'000;

// Of the calling thread. 0: this kernel, or the thread's policy, has none that could be told.
std::int64_t time_slice_ns() noexcept;

// The calling thread's slice becomes short, where it is not and the kernel allows it; threads and
// processes that it starts later begin with it.
void shorten_time_slice() noexcept;

// The same, once per thread: for whoever is about to give its core away.
inline void shorten_time_slice_once() noexcept {
  thread_local constinit bool asked = false;
  if (asked) [[likely]]
    return;
  asked = true;
  shorten_time_slice();
}

// What belongs to the process that made it, and not to its forked children. A child has none of the
// threads that used it, which may have left it half changed or locked: so it is left alone there,
// and the child keeps the memory.

// The process that it is made in, as its children can tell.
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

// The same of several owners.
template <class T, class... Arguments>
std::shared_ptr<T> make_shared_at_home(Arguments&&... arguments) {
  return std::shared_ptr<T>(new T(std::forward<Arguments>(arguments)...), DeleteAtHome<T>());
}

}  // namespace rankine
