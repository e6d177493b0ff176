#include "engine/api/c/rank_handle.h"

#include <array>
#include <bit>
#include <mutex>

#include "engine/api/c/last_error.h"
#include "engine/api/c/registry_lock.h"

namespace rankine {
namespace {

static_assert(sizeof(rkComm_t) == 8, "a handle is a slot and a generation of 32 bits each");

// Slots in chunks, each twice as large as the one before, that never move and never go.
class Slots {
 public:
  static constexpr std::uint32_t kFirst = 64;

  // nullptr: there is none with that index.
  HandleSlot* find(std::uint32_t index) const noexcept {
    const auto chunk = static_cast<std::size_t>(std::bit_width(index / kFirst + 1) - 1);
    HandleSlot* first = chunk < chunks_.size() ? chunks_[chunk].load(std::memory_order_acquire)
                                               : nullptr;  // pairs with grow()
    return first == nullptr ? nullptr : first + (index - begin_of(chunk));
  }

  // Under the lock.
  HandleSlot& take() {
    if (free_.empty()) grow();
    HandleSlot& slot = *free_.back();
    free_.pop_back();
    return slot;
  }
  void put_back(HandleSlot& slot) noexcept { free_.push_back(&slot); }

 private:
  static std::uint32_t begin_of(std::size_t chunk) noexcept {
    return ((std::uint32_t{1} << chunk) - 1) * kFirst;
  }
  void grow() {
    const std::uint32_t size = kFirst << used_;
    free_.reserve(begin_of(used_) + size);  // so that put_back() needs no memory
    auto* const first = new HandleSlot[size];
    for (std::uint32_t i = size; i-- > 0;) {
      first[i].index = begin_of(used_) + i;
      free_.push_back(first + i);
    }
    chunks_[used_++].store(first, std::memory_order_release);  // pairs with find()
  }

  std::array<std::atomic<HandleSlot*>, 20> chunks_{};
  std::size_t used_ = 0;
  std::vector<HandleSlot*> free_;
};

// Never destroyed: threads may make calls while exit() destroys static objects.
Slots& slots() {
  static Slots& all = *new Slots;
  return all;
}

constexpr std::uint64_t kGeneration = std::uint64_t{0xffffffff} << 32;
constexpr std::uint64_t kUsers = HandleSlot::kBusy | (HandleSlot::kBusy - 1);

std::uint64_t bits_of(rkComm_t comm) noexcept { return reinterpret_cast<std::uintptr_t>(comm); }

// The slot that the handle names, whoever lies there now.
HandleSlot* slot_of(rkComm_t comm) noexcept {
  return slots().find(static_cast<std::uint32_t>(bits_of(comm)));
}

[[noreturn]] void refuse(rkComm_t comm) {
  throw Refusal{rkInvalidArgument,
                comm == nullptr
                    ? "comm is NULL"
                    : "comm is no communicator's handle, or one that has been destroyed"};
}

// The slot stays doomed until it is taken again, so that the old handle stays refused.
void bury(HandleSlot& slot) noexcept {
  const std::unique_ptr<RankHandle> dead = std::move(slot.handle);
  const std::lock_guard lock(registry_lock());
  slots().put_back(slot);
}

}  // namespace

rkComm_t add_handle(std::unique_ptr<RankHandle> handle) {
  const std::lock_guard lock(registry_lock());
  HandleSlot& slot = slots().take();
  slot.handle = std::move(handle);
  slot.home.store(HomeProcess(), std::memory_order_relaxed);
  // Generations begin at 1, so no handle is NULL. Release: pairs with Borrowed.
  std::uint64_t generation =
      (slot.state.load(std::memory_order_relaxed) & kGeneration) + (std::uint64_t{1} << 32);
  if (generation == 0) generation = std::uint64_t{1} << 32;
  slot.state.store(generation, std::memory_order_release);
  return reinterpret_cast<rkComm_t>(static_cast<std::uintptr_t>(generation | slot.index));
}

Borrowed::Borrowed(rkComm_t comm, As as) : slot_(slot_of(comm)), as_(as) {
  if (slot_ == nullptr) refuse(comm);
  const std::uint64_t generation = bits_of(comm) & kGeneration;
  std::uint64_t seen = slot_->state.load(std::memory_order_acquire);
  for (;;) {
    if ((seen & kGeneration) != generation || generation == 0 ||
        (seen & HandleSlot::kDoomed) != 0) {
      refuse(comm);
    }
    if (!slot_->home.load(std::memory_order_relaxed).is_this()) {
      throw Refusal{rkForked,
                    "this process was forked from the one whose rank this is; make a communicator "
                    "of its own"};
    }
    if (as == As::caller && (seen & HandleSlot::kBusy) != 0) {
      throw Refusal{rkInvalidUsage,
                    "comm is in a call of another thread; a rank's handle is used by one thread at "
                    "a time"};
    }
    // Acquire: pairs with the release of whoever used it before.
    if (slot_->state.compare_exchange_weak(seen, seen + static_cast<std::uint64_t>(as),
                                           std::memory_order_acquire)) {
      return;
    }
  }
}

Borrowed::~Borrowed() {
  const auto mine = static_cast<std::uint64_t>(as_);
  const std::uint64_t left =
      slot_->state.fetch_sub(mine, std::memory_order_acq_rel) - mine;  // pairs with the next user
  if ((left & HandleSlot::kDoomed) != 0 && (left & kUsers) == 0) bury(*slot_);
}

void Borrowed::doom() { slot_->state.fetch_or(HandleSlot::kDoomed, std::memory_order_relaxed); }

bool forget_inherited(rkComm_t comm) noexcept {
  HandleSlot* const slot = slot_of(comm);
  if (slot == nullptr || slot->home.load(std::memory_order_relaxed).is_this()) return false;
  const std::uint64_t seen = slot->state.load(std::memory_order_relaxed);
  if ((seen & kGeneration) != (bits_of(comm) & kGeneration) || seen >> 32 == 0) return false;
  if ((seen & HandleSlot::kDoomed) != 0) return false;
  slot->state.fetch_or(HandleSlot::kDoomed, std::memory_order_relaxed);
  return true;
}

}  // namespace rankine
