// What belongs to the process that made it, and not to its forked children. A child has none of the
// threads that used it, which may have left it half changed or locked: so it is left alone there,
// and the child keeps the memory.
#pragma once

#include <memory>
#include <new>
#include <utility>

#include "engine/run/fork_count.h"

namespace rankine {

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
