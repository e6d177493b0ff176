// Huge pages for what is large and about to be written: a fault per 2 MiB in place of one per 4
// KiB. Where the kernel has none to give, it is memory like any other.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace rankine {

inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

// For memory that nobody has written to yet, however it was come by.
inline void prefer_huge_pages(const void* begin, std::size_t bytes) {
  if (bytes < 2 * kHugePage) return;  // too little to matter
  const auto at = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = (at + kHugePage - 1) / kHugePage * kHugePage;
  const std::uintptr_t end = (at + bytes) / kHugePage * kHugePage;
  madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

// What is large begins with a page, and so leaves few bytes outside of them.
template <class T>
struct HugeAllocator {
  using value_type = T;

  HugeAllocator() = default;
  template <class U>
  HugeAllocator(const HugeAllocator<U>&) noexcept {}

  T* allocate(std::size_t count) {
    if (!is_large(count)) return std::allocator<T>().allocate(count);
    void* const memory = ::operator new (count * sizeof(T), std::align_val_t{kHugePage});
    prefer_huge_pages(memory, count * sizeof(T));
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    if (!is_large(count)) return std::allocator<T>().deallocate(memory, count);
    ::operator delete (memory, std::align_val_t{kHugePage});
  }
  bool operator==(const HugeAllocator&) const = default;

 private:
  static bool is_large(std::size_t count) { return count >= 2 * kHugePage / sizeof(T); }
};

template <class T>
using HugeVector = std::vector<T, HugeAllocator<T>>;

}  // namespace rankine
