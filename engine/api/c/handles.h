// The objects behind the handles of the C API: a table from handles to objects (HandleTable), a
// handle in use (Borrowed), and the objects of ranks, operations and epilogues.
//
// registry_lock() guards the process-wide lists of the C functions: free handles and unique ids.
// fork() waits for it, so a child never inherits it locked.
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
#include "engine/api/quantised.h"
#include "engine/base/memory.h"
#include "engine/run/kernels/types.h"
#include "engine/run/machine.h"
#include "engine/run/process.h"
#include "engine/run/user_functions.h"

namespace rankine {

// The number of signal handlers that are using a handle now. It is 0 in a forked child, because
// only the forking thread exists there.
extern std::atomic<int> handlers_looking;

std::mutex& registry_lock();

// A handle is a number: the index of a slot in a table that only grows, and a generation that
// counts the objects of that slot. So any value given as a handle can be checked without
// dereferencing it, and a destroyed handle differs from its successor. A slot's state is one word
// that also counts the handle's users: a compare-and-swap before a call and a subtraction after it
// keep a second thread out, and keep the object alive in a call while another thread aborts.
//
// An Object type defines Handle (its handle type), kKind (a bit that distinguishes its handles from
// handles of other Objects) and kWords (error texts).

struct HandleWords {
  const char* is_null;     // "comm is NULL"
  const char* is_none;     // "comm is no valid handle, or has been destroyed"
  const char* is_busy;     // "comm is in a call of another thread"
  const char* is_parents;  // "this process was forked from the process that made it"
};

struct RankHandle;

// One line each, because the threads of different handles write their slots at once.
template <class Object>
struct alignas(kCacheLine) HandleSlot {
  // Upper half: the generation. Lower half: the flags below and the number of readers.
  static constexpr std::uint64_t kDoomed = std::uint64_t{1} << 31;  // goes with its last user
  static constexpr std::uint64_t kBusy = std::uint64_t{1} << 30;    // a thread is in a call
  // Of a rank. Short ways need no look at the rank, because they find its state changed.
  static constexpr std::uint64_t kHasOptions = std::uint64_t{1} << 29;
  static constexpr std::uint64_t kFinalized = std::uint64_t{1} << 28;
  static constexpr std::uint64_t kReader = 1;  // one reader
  static constexpr std::uint64_t kUsers = kBusy | (kFinalized - 1);

  std::atomic<std::uint64_t> state{kDoomed};  // generation 0: never used
  std::atomic<HomeProcess> home{};
  std::uint32_t index = 0;
  std::unique_ptr<Object> object;
  HandleSlot* next_free = nullptr;
  // For an object that is used only while one rank is held, and freed only then if the rank lives:
  // the slot of that rank, its state at rest, and if a thread that holds the rank alone uses the
  // object. The slot may get another object at any time. All relaxed: see use_by_rank().
  std::atomic<HandleSlot<RankHandle>*> rank{nullptr};
  std::atomic<std::uint64_t> rank_at_rest{0};
  // Of a request: the thread whose start ran to its end, and whose wait needs only this; kNoThread:
  // none. One exchange takes it away, in that wait or in BorrowedRequest().
  std::atomic<std::uint64_t> over_for{kNoThread};
  std::atomic<bool> used_by_rank{false};
};

// Slots in chunks, each twice as large as the one before. Chunks never move and are never freed.
// Only static members, none with a destructor: threads may make calls while exit() destroys static
// objects.
template <class Object>
class HandleTable {
 public:
  using Slot = HandleSlot<Object>;
  using Handle = typename Object::Handle;
  static_assert(sizeof(Handle) == 8, "a handle is a slot and a generation of 32 bits each");
  static constexpr std::uint64_t kGeneration = std::uint64_t{0xffffffff} << 32;
  static constexpr std::uint64_t kNext = std::uint64_t{1} << 32;

  // Calls act(object) for a handle; the object is not destroyed meanwhile. Async-signal-safe if act
  // is: it may interrupt any thread, also a thread in a call on the handle, or destroying it. Sets
  // no error text.
  template <class Act>
  static rkResult_t look_from_signal(Handle handle, const Act& act) noexcept {
    Slot* const slot = find(handle);
    const std::uint64_t generation = bits_of(handle) & kGeneration;
    if (slot == nullptr) return rkInvalidArgument;
    // Sequentially consistent, as the next load: pairs with doom() followed by bury(). Either
    // bury() sees this reader, or this load sees that the object is doomed.
    handlers_looking.fetch_add(1, std::memory_order_seq_cst);
    const std::uint64_t seen = slot->state.load(std::memory_order_seq_cst);
    rkResult_t result = rkSuccess;
    if (((seen ^ generation) & (kGeneration | Slot::kDoomed)) != 0) {
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

  // Returns the handle's slot for any generation; nullptr: no such slot.
  static Slot* find(Handle handle) noexcept {
    const std::uint32_t index = static_cast<std::uint32_t>(bits_of(handle)) ^ Object::kKind;
    std::uint32_t chunk = 0, at = index;
    if (index >= kFirst) [[unlikely]] {
      // Chunk c has the slots of which index + kFirst has c bits more than kFirst.
      const std::uint32_t place = index + kFirst;
      chunk = static_cast<std::uint32_t>(std::bit_width(place) - std::bit_width(kFirst));
      at = place - std::bit_floor(place);
      if (chunk >= chunks_.size()) return nullptr;
    }
    Slot* const first = chunks_[chunk].load(std::memory_order_acquire);  // pairs with grow()
    return first == nullptr ? nullptr : first + at;
  }

  // May throw std::bad_alloc.
  static Handle add(std::unique_ptr<Object> object) {
    const std::lock_guard lock(registry_lock());
    if (free_ == nullptr) grow();
    Slot& slot = *std::exchange(free_, free_->next_free);
    slot.object = std::move(object);
    slot.home.store(HomeProcess(), std::memory_order_relaxed);
    slot.rank.store(nullptr, std::memory_order_relaxed);
    slot.over_for.store(kNoThread, std::memory_order_relaxed);
    // Generations begin at 1, so no handle is NULL. Release: pairs with Borrowed.
    std::uint64_t generation = slot.state.load(std::memory_order_relaxed) & kGeneration;
    if (generation == 0) generation = kNext;
    slot.state.store(generation, std::memory_order_release);
    return reinterpret_cast<Handle>(
        static_cast<std::uintptr_t>(generation | (slot.index ^ Object::kKind)));
  }
  // The short way of Borrowed, for a caller that will not doom the object: holds a handle that
  // nobody uses. `at_rest`: the handle's generation. False: it is in use, or no valid handle.
  // leave() ends it.
  [[gnu::always_inline]] static bool take(Slot& slot, std::uint64_t at_rest) noexcept {
    // Acquire and release: pair with the former and the next user.
    return slot.state.compare_exchange_strong(at_rest, at_rest | Slot::kBusy,
                                              std::memory_order_acquire);
  }
  static void leave(Slot& slot) noexcept {
    slot.state.fetch_sub(Slot::kBusy, std::memory_order_release);
  }
  // The slot stays doomed until its next use; from the next generation on the object is destroyed.
  static void bury(Slot& slot) noexcept {
    // A handler that interrupts this thread ends before this loop continues.
    while (handlers_looking.load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
    slot.object.reset();
    const std::uint64_t next = (slot.state.load(std::memory_order_relaxed) & kGeneration) + kNext;
    slot.state.store(next | Slot::kDoomed, std::memory_order_release);  // pairs with await_end()
    const std::lock_guard lock(registry_lock());
    slot.next_free = std::exchange(free_, &slot);
  }

 private:
  static constexpr std::uint32_t kFirst = 64;
  static_assert((Object::kKind & ~(std::uint32_t{7} << 29)) == 0, "above the index of every slot");

  static std::uint32_t begin_of(std::size_t chunk) noexcept {
    return ((std::uint32_t{1} << chunk) - 1) * kFirst;
  }
  // Requires the lock. May throw std::bad_alloc.
  static void grow() {
    const std::uint32_t size = kFirst << used_;
    auto* const first = new Slot[size];
    for (std::uint32_t i = size; i-- > 0;) {
      first[i].index = begin_of(used_) + i;
      first[i].next_free = std::exchange(free_, first + i);
    }
    chunks_[used_++].store(first, std::memory_order_release);  // pairs with find()
  }

  static inline constinit std::array<std::atomic<Slot*>, 20> chunks_{};
  static inline constinit std::size_t used_ = 0;
  static inline constinit Slot* free_ = nullptr;
};

// A handle in use. The constructor throws a Refusal for an invalid handle (rkInvalidArgument), a
// handle made before a fork (rkForked), and a handle in a call of another thread (rkInvalidUsage).
template <class Object>
class Borrowed {
  using Table = HandleTable<Object>;
  using Slot = typename Table::Slot;

 public:
  enum class As : std::uint64_t { caller = Slot::kBusy, reader = Slot::kReader };

  [[gnu::always_inline]] Borrowed(typename Object::Handle handle, As as)
      : slot_(Table::find(handle)), as_(as) {
    const std::uint64_t generation = Table::bits_of(handle) & Table::kGeneration;
    // A caller keeps other callers out; a reader does not.
    const std::uint64_t compared =
        Table::kGeneration | Slot::kDoomed | (as == As::caller ? Slot::kBusy : 0);
    if (slot_ == nullptr) [[unlikely]]
      refuse(handle, generation);
    std::uint64_t seen = slot_->state.load(std::memory_order_acquire);
    // Acquire: pairs with the release of the previous user.
    do {
      if (((seen ^ generation) & compared) != 0 ||
          !slot_->home.load(std::memory_order_relaxed).is_this()) [[unlikely]] {
        refuse(handle, seen ^ generation);
      }
    } while (!slot_->state.compare_exchange_weak(seen, seen + static_cast<std::uint64_t>(as),
                                                 std::memory_order_acquire));
  }
  [[gnu::always_inline]] ~Borrowed() {
    if (slot_ == nullptr) return;
    const auto mine = static_cast<std::uint64_t>(as_);
    const std::uint64_t left =
        slot_->state.fetch_sub(mine, std::memory_order_acq_rel) - mine;  // pairs with the next user
    if ((left & Slot::kDoomed) != 0 && (left & Slot::kUsers) == 0) [[unlikely]]
      Table::bury(*slot_);
  }
  Borrowed(Borrowed&& other) noexcept
      : slot_(std::exchange(other.slot_, nullptr)), as_(other.as_) {}
  Borrowed& operator=(Borrowed&&) = delete;

  Slot& slot() const { return *slot_; }
  Object* operator->() const { return slot_->object.get(); }
  Object& operator*() const { return *slot_->object; }
  // The object is destroyed when its last user, at the latest this one, leaves. Sequentially
  // consistent: pairs with look_from_signal().
  void doom() { slot_->state.fetch_or(Slot::kDoomed, std::memory_order_seq_cst); }
  // Sets or clears a flag. Relaxed: the destructor publishes it to the next user.
  void set(std::uint64_t flag, bool on) {
    on ? slot_->state.fetch_or(flag, std::memory_order_relaxed)
       : slot_->state.fetch_and(~flag, std::memory_order_relaxed);
  }
  // For a handle that is refused from now on: waits until its object is destroyed, possibly by
  // another thread. Returns false if another thread is in a call on it.
  static bool await_end(typename Object::Handle handle) {
    const Slot* const slot = Table::find(handle);
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
  // `differs`: the bits in which the slot's state differs from that of a valid handle.
  [[noreturn, gnu::noinline, gnu::cold]] void refuse(typename Object::Handle handle,
                                                     std::uint64_t differs) const {
    if (handle == nullptr) throw Refusal{rkInvalidArgument, Object::kWords.is_null};
    if (slot_ == nullptr || (differs & (Table::kGeneration | Slot::kDoomed)) != 0) {
      throw Refusal{rkInvalidArgument, Object::kWords.is_none};
    }
    if (!slot_->home.load(std::memory_order_relaxed).is_this()) {
      throw Refusal{rkForked, Object::kWords.is_parents};
    }
    throw Refusal{rkInvalidUsage, Object::kWords.is_busy};
  }

  Slot* slot_;
  As as_;
};

// In a forked child: forgets an inherited handle, and leaves its object alone. Returns false if the
// handle belongs to this process, or is invalid.
template <class Object>
bool forget_inherited(typename Object::Handle handle) noexcept {
  using Table = HandleTable<Object>;
  using Slot = typename Table::Slot;
  Slot* const slot = Table::find(handle);
  if (slot == nullptr || slot->home.load(std::memory_order_relaxed).is_this()) return false;
  const std::uint64_t seen = slot->state.load(std::memory_order_relaxed);
  const std::uint64_t generation = Table::bits_of(handle) & Table::kGeneration;
  if (((seen ^ generation) & (Table::kGeneration | Slot::kDoomed)) != 0) return false;
  slot->state.fetch_or(Slot::kDoomed, std::memory_order_relaxed);
  return true;
}

// Operations of rkRedOpCreate() and rkRedOpCreatePreMulSum(): numbers above those of rkRedOp_t,
// valid for one handle, never reused.

// A user's function, or, if `function` is nullptr, a factor.
struct CreatedOperation {
  rkRedFunction_t function = nullptr;
  void* context = nullptr;
  UserOp user_op{};       // calls the function; its context is this object
  std::uint64_t tag = 0;  // distinguishes functions of one process when ranks compare calls
  DataType type = DataType::raw;
  alignas(std::max_align_t) std::array<std::byte, 16> factor{};

  // Sets the operation in `call`, which then refers to this object; `type` is the call's
  // rkDataType_t. Throws a Refusal if the type does not match the operation.
  void describe(Call& call, int type) const;
};

// The object behind a rkComm_t.

// Call options with storage for their lists and texts.
struct OwnedCallOptions {
  std::string algorithm;
  std::vector<int> dims, skips, levels;
  CallOptions options;  // points into the members above
};

struct RankHandle {
  using Handle = rkComm_t;
  static constexpr std::uint32_t kKind = 0;
  static constexpr HandleWords kWords = {
      "comm is NULL", "comm is no valid handle, or has been destroyed",
      "comm is in a call of another thread; a rank's handle is used by one thread at a time",
      "this process was forked from the rank's process; make a communicator in this process"};

  // The communicator, memory and operations outlive the member; its destructor ends the calls in
  // flight.
  std::shared_ptr<Communicator> communicator;
  std::map<const void*, Payload<std::byte>> memory{};  // from rkMemAlloc()
  std::map<int, std::shared_ptr<const CreatedOperation>> operations{};
  std::unique_ptr<Member> member;
  std::unique_ptr<QuantisedSum> quantised{};               // of the latest options
  std::shared_ptr<const OwnedCallOptions> call_options{};  // nullptr: the engine chooses
  int next_operation = rkNumOps;
  bool finalized = false;
  // Throws a Refusal if the rank was finalized.
  void check_not_finalized() const {
    if (finalized) throw Refusal{rkInvalidUsage, "comm has been finalized; destroy it"};
  }
  bool among_processes = false;  // functions have different addresses on different ranks

  // The options of the rank's calls.
  CallOptions options() const {
    return call_options != nullptr ? call_options->options : CallOptions();
  }
};

using BorrowedRank = Borrowed<RankHandle>;
using RankTable = HandleTable<RankHandle>;

// The rank of a handle that nobody used, held for the calling thread; the slot is empty if it was
// used, and for a rank with call options or one that was finalized.
class TakenRank {
 public:
  [[gnu::always_inline]] explicit TakenRank(rkComm_t comm) noexcept : slot_(RankTable::find(comm)) {
    if (slot_ != nullptr &&
        !RankTable::take(*slot_, RankTable::bits_of(comm) & RankTable::kGeneration)) [[unlikely]]
      slot_ = nullptr;
  }
  [[gnu::always_inline]] ~TakenRank() {
    if (slot_ != nullptr) RankTable::leave(*slot_);
  }
  TakenRank(const TakenRank&) = delete;
  TakenRank& operator=(const TakenRank&) = delete;

  explicit operator bool() const { return slot_ != nullptr; }
  RankTable::Slot& slot() const { return *slot_; }
  Member& member() const { return *slot_->object->member; }

 private:
  RankTable::Slot* slot_;
};

// The error of the last plain call of a rank that is held.
[[gnu::cold]] inline Status failure_of(const RankTable::Slot& rank) {
  if (!rank.home.load(std::memory_order_relaxed).is_this()) {
    throw Refusal{rkForked, RankHandle::kWords.is_parents};
  }
  return rank.object->member->failure();
}

// The slot of a handle that nobody uses; nullptr: it is in use, or no valid handle.
template <class Object>
[[gnu::always_inline]] inline HandleSlot<Object>* slot_at_rest(
    typename Object::Handle handle) noexcept {
  using Table = HandleTable<Object>;
  auto* const slot = Table::find(handle);
  return slot != nullptr && slot->state.load(std::memory_order_relaxed) ==
                                (Table::bits_of(handle) & Table::kGeneration)
             ? slot
             : nullptr;
}

// Calls act() while the one rank of the object in a slot_at_rest() is held, and with it the object,
// without a look-up. False: act() has returned false, or the object has no such rank, it or the
// rank is in use, the rank has got or lost options, or is finalized.
template <class Object, class Act>
[[gnu::always_inline]] inline bool use_by_rank(HandleSlot<Object>& slot,
                                               typename Object::Handle handle,
                                               const Act& act) noexcept {
  RankTable::Slot* const rank = slot.rank.load(std::memory_order_relaxed);
  if (rank == nullptr ||
      !RankTable::take(*rank, slot.rank_at_rest.load(std::memory_order_relaxed))) {
    return false;
  }
  // If the object is still there, it stays as long as its rank is held. (If not, the rank may be
  // another object's.)
  bool done = false;
  if (slot.state.load(std::memory_order_relaxed) ==
      (HandleTable<Object>::bits_of(handle) & HandleTable<Object>::kGeneration)) {
    slot.used_by_rank.store(true, std::memory_order_relaxed);
    done = act();
    slot.used_by_rank.store(false, std::memory_order_relaxed);
  }
  RankTable::leave(*rank);
  return done;
}

// Makes a handle for a member. `communicator` is nullptr if the member keeps its communicator
// alive. May throw std::bad_alloc.
rkComm_t add_rank(std::unique_ptr<Member> member, bool among_processes,
                  std::shared_ptr<Communicator> communicator = nullptr);

// The object behind a rkEpilogue_t.

// Steps, or a function of the caller. The engine's `context` points to this object, so it must not
// move; calls keep it alive.
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
      "epilogue is NULL", "epilogue is no valid handle, or has been destroyed",
      "epilogue is in a call of another thread; it is used by one thread at a time",
      "this process was forked from the epilogue's process"};

  std::shared_ptr<const CreatedEpilogue> epilogue;
};

using BorrowedEpilogue = Borrowed<EpilogueHandle>;

}  // namespace rankine
