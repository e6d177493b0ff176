// process_wide<T>() returns the process's single T. A forked child gets a new one and leaves its
// parent's alone, because that may be half changed or locked for ever.
#pragma once

#include <memory>

#include "engine/run/machine.h"
#include "engine/run/process.h"

namespace rankine {

// May throw std::bad_alloc at its first call in a process. The call is thread-safe; the value is
// only as thread-safe as T.
template <class T>
T& process_wide() {
  struct Holder {
    HomeProcess home;
    T value;
  };
  static Atomic<Holder*> current{nullptr};
  Holder* holder = current.load(std::memory_order_acquire);  // pairs with the exchange
  while (holder == nullptr || !holder->home.is_this()) {
    auto made = std::make_unique<Holder>();
    if (current.compare_exchange_strong(holder, made.get(), std::memory_order_acq_rel)) {
      holder = made.release();
    }
  }
  return holder->value;
}

}  // namespace rankine
