// A value that every process has one of: a forked child begins with a new one, since its parent's
// may be half changed or locked for ever, and is left alone.
#pragma once

#include <memory>

#include "engine/run/machine.h"
#include "engine/run/process.h"

namespace rankine {

// May throw std::bad_alloc the first time in a process. Thread-safe; the value is not made so by
// this.
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
