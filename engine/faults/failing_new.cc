#include "engine/faults/failing_new.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace rankine::faults {
namespace {

thread_local int counting = 0;  // live AllocationsCount objects of this thread
std::atomic<std::int64_t> counted{0}, alive{0};
std::atomic<bool> watching{false};
std::atomic<std::int64_t> first_to_fail{0}, last_to_fail{0}, to_act{0};
std::atomic<void (*)()> what_to_do{nullptr};

}  // namespace

AllocationsCount::AllocationsCount() { ++counting; }
AllocationsCount::~AllocationsCount() { --counting; }

void fail_allocation(std::int64_t k, bool all_later) {
  counted.store(0);
  last_to_fail.store(all_later ? INT64_MAX : k);
  first_to_fail.store(k);
}

void at_allocation(std::int64_t k, void (*act)()) {
  counted.store(0);
  what_to_do.store(act);
  to_act.store(k);
}

std::int64_t allocations_counted() { return counted.load(); }
void watch_blocks(bool watch) { watching.store(watch); }
std::int64_t blocks_alive() { return alive.load(); }

}  // namespace rankine::faults

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

bool rankine::faults::new_can_fail() { return false; }

#else

bool rankine::faults::new_can_fail() { return true; }

namespace rankine::faults {
namespace {

bool fails_now() {
  if (counting == 0) return false;
  const std::int64_t number = counted.fetch_add(1, std::memory_order_relaxed) + 1;
  if (number == to_act.load(std::memory_order_relaxed)) {
    if (void (*act)() = what_to_do.load()) act();
  }
  const std::int64_t first = first_to_fail.load(std::memory_order_relaxed);
  return first != 0 && number >= first && number <= last_to_fail.load(std::memory_order_relaxed);
}

}  // namespace
}  // namespace rankine::faults

namespace {

void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  using namespace rankine::faults;
  if (fails_now()) return nullptr;
  if (bytes == 0) bytes = 1;
  void* memory =
      alignment <= alignof(std::max_align_t)
          ? std::malloc(bytes)
          : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory != nullptr && watching.load(std::memory_order_relaxed)) {
    alive.fetch_add(1, std::memory_order_relaxed);
  }
  return memory;
}

void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  void* memory = allocate(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void release(void* memory) noexcept {
  using namespace rankine::faults;
  if (memory != nullptr && watching.load(std::memory_order_relaxed)) {
    alive.fetch_sub(1, std::memory_order_relaxed);
  }
  std::free(memory);
}

}  // namespace

// All forms of new, because the compiler chooses among them. It inlines one half of a pair in some
// places and then takes malloc and delete for a mismatch.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void* operator new(std::size_t bytes) { return allocate_or_throw(bytes, 1); }
void* operator new[](std::size_t bytes) { return allocate_or_throw(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t a) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t bytes, std::align_val_t a) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(a));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, 1); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, 1);
}
void* operator new(std::size_t bytes, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(bytes, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t bytes, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(bytes, static_cast<std::size_t>(a));
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }

#endif
