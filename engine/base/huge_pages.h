// Huge pages for what is large: a fault per 2 MiB in place of one per 4 KiB, and loads that run
// ahead of a loop further than one of these. Where the kernel has none to give, it is memory like
// any other.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace rankine {

inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

constexpr std::size_t whole_huge_pages(std::size_t bytes) {
  return (bytes + kHugePage - 1) / kHugePage * kHugePage;
}

// 0, or why the kernel does not like it, of the huge pages that lie inside; of none at all, 0.
inline int advise_huge_pages(const void* begin, std::size_t bytes, int advice) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = whole_huge_pages(at), end = (at + bytes) / kHugePage * kHugePage;
  if (first >= end) return 0;
  return madvise(reinterpret_cast<void*>(first), end - first, advice) == 0 ? 0 : errno;
}

// For memory that nobody has written to yet, however it was come by.
inline void prefer_huge_pages(const void* begin, std::size_t bytes) noexcept {
  if (bytes < 2 * kHugePage) return;  // too little to matter
  advise_huge_pages(begin, bytes, MADV_HUGEPAGE);
}

// For shared memory, whose pages have been taken and are as huge as its file system makes them,
// which mostly is not at all: they are moved together, whatever the system's settings say. For a
// file, where its offsets and the addresses are alike but for whole huge pages. Returns 0, or why
// not: Linux before 6.1 cannot.
inline int collapse_into_huge_pages(const void* begin, std::size_t bytes) noexcept {
  constexpr int kCollapse = 25;  // MADV_COLLAPSE, which older headers do not have
  return advise_huge_pages(begin, bytes, kCollapse);
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
