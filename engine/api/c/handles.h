// The one lock of what the C functions keep for the whole process: free handles, and unique ids.
// A fork waits for it, so that a child never inherits it locked.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/api/c/last_error.h"
#include "engine/api/c/rankine.h"
#include "engine/api/call.h"
#include "engine/api/communicator.h"
#include "engine/api/epilogues.h"
#include "engine/run/kernels/types.h"
#include "engine/run/process.h"
#include "engine/run/user_functions.h"

namespace rankine {

// Signal handlers that look at a handle at this moment (handle_table.h). A forked child begins with
// none: only the thread that forks is there.
extern std::atomic<int> handlers_looking;

std::mutex& registry_lock();

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

// Operations that a rank has made by rkRedOpCreate() and rkRedOpCreatePreMulSum(): numbers behind
// those of rkRedOp_t, of one handle, which are not given twice.

// A user's function, or, where there is none, a factor.
struct CreatedOperation {
  rkRedFunction_t function = nullptr;
  void* context = nullptr;
  UserOp user_op{};       // calls the function; its context is this object
  std::uint64_t tag = 0;  // tells functions of one process apart where ranks are compared
  DataType type = DataType::raw;
  alignas(std::max_align_t) std::array<std::byte, 16> factor{};

  // Into a call, which refers to this object; `type` is its rkDataType_t. Throws a Refusal of a
  // type that is not the operation's.
  void describe(Call& call, int type) const;
};

// What a rkComm_t stands for.

// Call options that own what they name.
struct OwnedCallOptions {
  std::string algorithm;
  std::vector<int> dims, skips, levels;
  CallOptions options;  // its views are of the members above
};

struct RankHandle {
  using Handle = rkComm_t;
  static constexpr std::uint32_t kKind = 0;
  static constexpr HandleWords kWords = {
      "comm is NULL", "comm is no communicator's handle, or one that has been destroyed",
      "comm is in a call of another thread; a rank's handle is used by one thread at a time",
      "this process was forked from the one whose rank this is; make a communicator of its own"};

  // These outlive the member, with which the calls end that are under way.
  std::shared_ptr<Communicator> communicator;
  std::map<const void*, Payload<std::byte>> memory{};  // of rkMemAlloc()
  std::map<int, std::shared_ptr<const CreatedOperation>> operations{};
  std::unique_ptr<Member> member;
  std::shared_ptr<const OwnedCallOptions> call_options{};  // none: the engine's choice
  int next_operation = rkNumOps;
  bool finalized = false;
  bool among_processes = false;  // functions of the ranks' lie elsewhere in each of them

  // How its calls are done.
  CallOptions options() const {
    return call_options != nullptr ? call_options->options : CallOptions();
  }
};

using BorrowedRank = Borrowed<RankHandle>;

// Of a member that keeps its communicator, or of these two. May throw std::bad_alloc.
rkComm_t add_rank(std::unique_ptr<Member> member, bool among_processes,
                  std::shared_ptr<Communicator> communicator = nullptr);

// What a rkEpilogue_t stands for.

// Steps or a function of the caller's. The engine's `context` points into it, so it stays where it
// is, and calls that have it keep it.
class CreatedEpilogue : public Epilogue {
 public:
  explicit CreatedEpilogue(RowEpilogue steps);
  CreatedEpilogue(rkRowFunction_t function, std::size_t elements, void* function_context);
  CreatedEpilogue(const CreatedEpilogue&) = delete;
  CreatedEpilogue& operator=(const CreatedEpilogue&) = delete;

 private:
  std::unique_ptr<RowEpilogue> steps_;
  rkRowFunction_t function_ = nullptr;
  void* function_context_ = nullptr;
};

struct EpilogueHandle {
  using Handle = rkEpilogue_t;
  static constexpr std::uint32_t kKind = std::uint32_t{1} << 30;
  static constexpr HandleWords kWords = {
      "epilogue is NULL", "epilogue is none, or one that has been destroyed",
      "epilogue is in a call of another thread; it is used by one thread at a time",
      "this process was forked from the one whose epilogue this is"};

  std::shared_ptr<const CreatedEpilogue> epilogue;
};

using BorrowedEpilogue = Borrowed<EpilogueHandle>;

}  // namespace rankine
