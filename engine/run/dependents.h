// Who ends when something ends: the communicators that were split from one.
//
// tell() may run in a signal handler, so it takes no lock: it finds those to be told in slots that
// are never moved. Who leaves empties its slot and waits until nobody is telling any more.
#pragma once

#include <array>
#include <memory>
#include <mutex>

#include "engine/run/machine.h"

namespace rankine {

template <class Dependent>
class Dependents {
 public:
  Dependents() = default;
  ~Dependents() {
    for (Chunk* chunk = first_.next.load(std::memory_order_relaxed); chunk != nullptr;) {
      const std::unique_ptr<Chunk> last(chunk);
      chunk = chunk->next.load(std::memory_order_relaxed);
    }
  }
  Dependents(const Dependents&) = delete;
  Dependents& operator=(const Dependents&) = delete;

  // It is told from now on: whoever looks afterwards, sequentially consistent, for what is said
  // before tell() finds it, or it is told. May throw std::bad_alloc.
  void add(Dependent& one) {
    const std::lock_guard lock(changing_);
    for (Chunk* chunk = &first_;;) {
      for (Atomic<Dependent*>& slot : chunk->slots) {
        if (slot.load(std::memory_order_relaxed) != nullptr) continue;
        slot.store(&one, std::memory_order_seq_cst);  // pairs with tell()
        return;
      }
      Chunk* next = chunk->next.load(std::memory_order_relaxed);
      if (next == nullptr) {
        next = new Chunk;
        will_write(next, sizeof(Chunk));
        chunk->next.store(next, std::memory_order_seq_cst);  // as the slot's
      }
      chunk = next;
    }
  }

  // When this returns it is not told anything, and will not be.
  void remove(Dependent& one) noexcept {
    {
      const std::lock_guard lock(changing_);
      for (Chunk* chunk = &first_; chunk != nullptr;
           chunk = chunk->next.load(std::memory_order_relaxed)) {
        for (Atomic<Dependent*>& slot : chunk->slots) {
          if (slot.load(std::memory_order_relaxed) != &one) continue;
          slot.store(nullptr, std::memory_order_seq_cst);  // pairs with tell()
        }
      }
    }
    // Whoever began to tell before the store above may have found it; who begins later does not.
    while (telling_.load(std::memory_order_seq_cst) != 0) sleep_ns(1'000);
  }

  template <class Tell>
  void tell(const Tell& say) noexcept {
    telling_.fetch_add(1, std::memory_order_seq_cst);  // pairs with remove()
    for (Chunk* chunk = &first_; chunk != nullptr;
         chunk = chunk->next.load(std::memory_order_seq_cst)) {  // pairs with add()
      if (chunk != &first_) will_read(chunk, sizeof(Chunk));
      for (Atomic<Dependent*>& slot : chunk->slots) {
        Dependent* one = slot.load(std::memory_order_seq_cst);  // pairs with add(), remove()
        if (one != nullptr) say(*one);
      }
    }
    telling_.fetch_sub(1, std::memory_order_release);  // pairs with remove()
  }

 private:
  struct Chunk {
    std::array<Atomic<Dependent*>, 7> slots{};
    Atomic<Chunk*> next{nullptr};
  };

  Mutex changing_;
  Chunk first_;
  Atomic<int> telling_{0};
};

}  // namespace rankine
