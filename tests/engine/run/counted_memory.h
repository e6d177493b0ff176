// CountedMemory counts the memory taken with new, and its maximum: bytes of blocks, not pages. This
// header replaces operators new and delete of the test binary that includes it.
#pragma once

#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace rankine {

// The sanitizers define these operators too, and libraries bind to those before ours.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kCountsMemory = false;
#else
inline constexpr bool kCountsMemory = true;
#endif

struct CountedMemory {
  inline static std::atomic<std::size_t> now{0}, most{0};

  // From now on `most` is the maximum; returns the memory taken now, to be subtracted.
  static std::size_t begin() {
    most.store(now.load());
    return now.load();
  }
  static void* take(std::size_t bytes,
                    std::align_val_t alignment = std::align_val_t{alignof(std::max_align_t)}) {
    void* memory = nullptr;
    if (posix_memalign(&memory, static_cast<std::size_t>(alignment), bytes) != 0) memory = nullptr;
    if (memory == nullptr) throw std::bad_alloc();
    const std::size_t all = now.fetch_add(malloc_usable_size(memory)) + malloc_usable_size(memory);
    std::size_t before = most.load();
    while (before < all && !most.compare_exchange_weak(before, all)) {
    }
    return memory;
  }
  static void give(void* memory) {
    if (memory == nullptr) return;
    now.fetch_sub(malloc_usable_size(memory));
    std::free(memory);
  }
};

}  // namespace rankine

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// The compiler sometimes inlines only one half of a pair, and then warns that malloc and delete do
// not match.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void* operator new(std::size_t bytes) { return rankine::CountedMemory::take(bytes); }
void* operator new[](std::size_t bytes) { return rankine::CountedMemory::take(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return rankine::CountedMemory::take(bytes, alignment);
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return rankine::CountedMemory::take(bytes, alignment);
}
void operator delete(void* memory) noexcept { rankine::CountedMemory::give(memory); }
void operator delete[](void* memory) noexcept { rankine::CountedMemory::give(memory); }
void operator delete(void* memory, std::align_val_t) noexcept {
  rankine::CountedMemory::give(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  rankine::CountedMemory::give(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  rankine::CountedMemory::give(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  rankine::CountedMemory::give(memory);
}
void operator delete(void* memory, std::size_t) noexcept { rankine::CountedMemory::give(memory); }
void operator delete[](void* memory, std::size_t) noexcept { rankine::CountedMemory::give(memory); }
#endif
