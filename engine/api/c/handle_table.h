// What a handle stands for, and how the C functions come by it.
//
// A handle is a number: which slot of a table that only grows, and which of the objects that lay
// there one after the other. So whatever is given as a handle can be looked up without being
// followed; one that has been destroyed is told from the one that came after it. A slot's state is
// one word, in which whoever uses the handle counts: a compare-and-swap before a call and a
// subtraction after it keep two threads out of one handle, and keep it alive in a call while
// another thread aborts.
//
// An Object has a type of handles, Handle, a bit in them that those of no other Object have, kKind,
// and kWords for errors.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "engine/api/c/last_error.h"
#include "engine/api/c/registry_lock.h"
#include "engine/run/process_owned.h"

namespace rankine {

struct HandleWords {
  const char* is_null;     // "comm is NULL"
  const char* is_none;     // "comm is no handle, or one that has been destroyed"
  const char* is_busy;     // "comm is in a call of another thread"
  const char* is_parents;  // "this process was forked from the one that made it"
};

template <class Object>
struct HandleSlot {
  // The generation in the upper half, then who is at it.
  static constexpr std::uint64_t kDoomed = std::uint64_t{1} << 31;  // goes with its last user
  static constexpr std::uint64_t kBusy = std::uint64_t{1} << 30;    // one thread makes calls
  static constexpr std::uint64_t kReader = 1;                       // others look

  std::atomic<std::uint64_t> state{0};  // generation 0: never taken
  std::atomic<HomeProcess> home{};
  std::unique_ptr<Object> object;
  std::uint32_t index = 0;
};

// Slots in chunks, each twice as large as the one before, that never move and never go.
template <class Object>
class HandleTable {
 public:
  using Slot = HandleSlot<Object>;
  using Handle = typename Object::Handle;
  static_assert(sizeof(Handle) == 8, "a handle is a slot and a generation of 32 bits each");
  static constexpr std::uint64_t kGeneration = std::uint64_t{0xffffffff} << 32;
  static constexpr std::uint64_t kNext = std::uint64_t{1} << 32;

  // Never destroyed: threads may make calls while exit() destroys static objects.
  static HandleTable& all() {
    static HandleTable* const table = [] {
      auto* const made = new HandleTable;
      made_.store(made, std::memory_order_release);  // pairs with look_from_signal()
      return made;
    }();
    return *table;
  }
  // act(object), of a handle that is not destroyed meanwhile. Async-signal-safe where act is: it may
  // interrupt any thread, also one that makes a call on the handle, or destroys it. Without a text.
  template <class Act>
  static rkResult_t look_from_signal(Handle handle, const Act& act) noexcept {
    const HandleTable* const table = made_.load(std::memory_order_acquire);  // pairs with all()
    Slot* const slot = table == nullptr ? nullptr : table->find(handle);
    const std::uint64_t generation = bits_of(handle) & kGeneration;
    if (slot == nullptr || generation == 0) return rkInvalidArgument;
    // Sequentially consistent, as the next load: pairs with doom() and then bury(), which sees that
    // we look, or we see that the object goes.
    handlers_looking.fetch_add(1, std::memory_order_seq_cst);
    const std::uint64_t seen = slot->state.load(std::memory_order_seq_cst);
    rkResult_t result = rkSuccess;
    if ((seen & kGeneration) != generation || (seen & Slot::kDoomed) != 0) {
      result = rkInvalidArgument;
    } else if (!slot->home.load(std::memory_order_relaxed).is_this()) {
      result = rkForked;
    } else {
      act(*slot->object);
    }
    handlers_looking.fetch_sub(1, std::memory_order_release);  // pairs with bury()
    return result;
  }
  static std::uint64_t bits_of(Handle handle) noexcept {
    return reinterpret_cast<std::uintptr_t>(handle);
  }

  // The slot that the handle names, whoever lies there now; nullptr: there is none.
  Slot* find(Handle handle) const noexcept {
    const std::uint32_t index = static_cast<std::uint32_t>(bits_of(handle)) ^ Object::kKind;
    const auto chunk = static_cast<std::size_t>(std::bit_width(index / kFirst + 1) - 1);
    Slot* first = chunk < chunks_.size() ? chunks_[chunk].load(std::memory_order_acquire)
                                         : nullptr;  // pairs with grow()
    return first == nullptr ? nullptr : first + (index - begin_of(chunk));
  }

  // May throw std::bad_alloc.
  Handle add(std::unique_ptr<Object> object) {
    const std::lock_guard lock(registry_lock());
    Slot& slot = take();
    slot.object = std::move(object);
    slot.home.store(HomeProcess(), std::memory_order_relaxed);
    // Generations begin at 1, so no handle is NULL. Release: pairs with Borrowed.
    std::uint64_t generation = slot.state.load(std::memory_order_relaxed) & kGeneration;
    if (generation == 0) generation = kNext;
    slot.state.store(generation, std::memory_order_release);
    return reinterpret_cast<Handle>(
        static_cast<std::uintptr_t>(generation | (slot.index ^ Object::kKind)));
  }
  // The slot stays doomed until it is taken again; from the next generation on the object is gone.
  void bury(Slot& slot) noexcept {
    // A handler that interrupts this very thread is over before we go on.
    while (handlers_looking.load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
    slot.object.reset();
    const std::uint64_t next = (slot.state.load(std::memory_order_relaxed) & kGeneration) + kNext;
    slot.state.store(next | Slot::kDoomed, std::memory_order_release);  // pairs with await_end()
    const std::lock_guard lock(registry_lock());
    free_.push_back(&slot);
  }

 private:
  static constexpr std::uint32_t kFirst = 64;
  static_assert((Object::kKind & ~(std::uint32_t{3} << 30)) == 0, "above the index of every slot");

  static std::uint32_t begin_of(std::size_t chunk) noexcept {
    return ((std::uint32_t{1} << chunk) - 1) * kFirst;
  }
  // Under the lock.
  Slot& take() {
    if (free_.empty()) grow();
    Slot& slot = *free_.back();
    free_.pop_back();
    return slot;
  }
  void grow() {
    const std::uint32_t size = kFirst << used_;
    free_.reserve(begin_of(used_) + size);  // so that bury() needs no memory
    auto* const first = new Slot[size];
    for (std::uint32_t i = size; i-- > 0;) {
      first[i].index = begin_of(used_) + i;
      free_.push_back(first + i);
    }
    chunks_[used_++].store(first, std::memory_order_release);  // pairs with find()
  }

  static inline std::atomic<HandleTable*> made_{nullptr};

  std::array<std::atomic<Slot*>, 20> chunks_{};
  std::size_t used_ = 0;
  std::vector<Slot*> free_;
};

// A handle in use. Throws a Refusal: of what is no handle (rkInvalidArgument), what was made before
// a fork (rkForked), and what another thread makes a call on (rkInvalidUsage).
template <class Object>
class Borrowed {
  using Table = HandleTable<Object>;
  using Slot = typename Table::Slot;

 public:
  enum class As : std::uint64_t { caller = Slot::kBusy, reader = Slot::kReader };

  Borrowed(typename Object::Handle handle, As as) : slot_(Table::all().find(handle)), as_(as) {
    const std::uint64_t generation = Table::bits_of(handle) & Table::kGeneration;
    if (slot_ == nullptr || generation == 0) refuse(handle);
    std::uint64_t seen = slot_->state.load(std::memory_order_acquire);
    for (;;) {
      if ((seen & Table::kGeneration) != generation || (seen & Slot::kDoomed) != 0) refuse(handle);
      if (!slot_->home.load(std::memory_order_relaxed).is_this()) {
        throw Refusal{rkForked, Object::kWords.is_parents};
      }
      if (as == As::caller && (seen & Slot::kBusy) != 0) {
        throw Refusal{rkInvalidUsage, Object::kWords.is_busy};
      }
      // Acquire: pairs with the release of whoever used it before.
      if (slot_->state.compare_exchange_weak(seen, seen + static_cast<std::uint64_t>(as),
                                             std::memory_order_acquire)) {
        return;
      }
    }
  }
  ~Borrowed() {
    if (slot_ == nullptr) return;
    constexpr std::uint64_t kUsers = Slot::kBusy | (Slot::kBusy - 1);
    const auto mine = static_cast<std::uint64_t>(as_);
    const std::uint64_t left =
        slot_->state.fetch_sub(mine, std::memory_order_acq_rel) - mine;  // pairs with the next user
    if ((left & Slot::kDoomed) != 0 && (left & kUsers) == 0) Table::all().bury(*slot_);
  }
  Borrowed(Borrowed&& other) noexcept
      : slot_(std::exchange(other.slot_, nullptr)), as_(other.as_) {}
  Borrowed& operator=(Borrowed&&) = delete;

  Object* operator->() const { return slot_->object.get(); }
  Object& operator*() const { return *slot_->object; }
  // The handle ends when its last user, at the latest this one, is done.
  // Sequentially consistent: pairs with look_from_signal().
  void doom() { slot_->state.fetch_or(Slot::kDoomed, std::memory_order_seq_cst); }
  // Of a handle that is refused from now on: until what it stood for is gone, for which another
  // thread may be seeing at this moment. False: that thread makes a call on it first.
  static bool await_end(typename Object::Handle handle) {
    const Slot* const slot = Table::all().find(handle);
    if (slot == nullptr || !slot->home.load(std::memory_order_relaxed).is_this()) return true;
    const std::uint64_t generation = Table::bits_of(handle) & Table::kGeneration;
    for (;;) {
      const std::uint64_t seen = slot->state.load(std::memory_order_acquire);  // pairs with bury()
      if ((seen & Table::kGeneration) != generation) return true;
      if ((seen & Slot::kBusy) != 0) return false;
      std::this_thread::yield();
    }
  }

 private:
  [[noreturn]] static void refuse(typename Object::Handle handle) {
    throw Refusal{rkInvalidArgument,
                  handle == nullptr ? Object::kWords.is_null : Object::kWords.is_none};
  }

  Slot* slot_;
  As as_;
};

// In a forked child: an inherited handle is forgotten, and what it stands for left alone. False: it
// is of this process, or none.
template <class Object>
bool forget_inherited(typename Object::Handle handle) noexcept {
  using Table = HandleTable<Object>;
  using Slot = typename Table::Slot;
  Slot* const slot = Table::all().find(handle);
  if (slot == nullptr || slot->home.load(std::memory_order_relaxed).is_this()) return false;
  const std::uint64_t seen = slot->state.load(std::memory_order_relaxed);
  const std::uint64_t bits = Table::bits_of(handle);
  if ((seen & Table::kGeneration) != (bits & Table::kGeneration) || seen >> 32 == 0) return false;
  if ((seen & Slot::kDoomed) != 0) return false;
  slot->state.fetch_or(Slot::kDoomed, std::memory_order_relaxed);
  return true;
}

}  // namespace rankine
