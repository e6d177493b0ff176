// This header defines cache lines, huge pages, and large tables that start as untouched zeros.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace rankine {

inline constexpr std::size_t kCacheLine = 64;  // bytes

// `bytes` rounded up to whole cache lines.
constexpr std::size_t whole_lines(std::size_t bytes) {
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

// Huge pages for large memory: one page fault per 2 MiB instead of one per 4 KiB, and prefetching
// past 4 KiB borders. If the kernel has none to give, the memory has small pages.

inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

constexpr std::size_t whole_huge_pages(std::size_t bytes) {
  return (bytes + kHugePage - 1) / kHugePage * kHugePage;
}

// Calls madvise on the huge pages inside the range. Returns 0 or errno; 0 if no huge page lies
// inside.
inline int advise_huge_pages(const void* begin, std::size_t bytes, int advice) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = whole_huge_pages(at), end = (at + bytes) / kHugePage * kHugePage;
  if (first >= end) return 0;
  return madvise(reinterpret_cast<void*>(first), end - first, advice) == 0 ? 0 : errno;
}

// For memory, from any source, that has not been written yet.
inline void prefer_huge_pages(const void* begin, std::size_t bytes) noexcept {
  if (bytes < 2 * kHugePage) return;  // too little to matter
  advise_huge_pages(begin, bytes, MADV_HUGEPAGE);
}

// For shared memory whose pages already exist and are mostly small: moves them together into huge
// pages, independent of the system's settings. For a file, offsets and addresses must be equal
// modulo the huge page size. Returns 0 or errno: Linux before 6.1 cannot do it.
inline int collapse_into_huge_pages(const void* begin, std::size_t bytes) noexcept {
  constexpr int kCollapse = 25;  // MADV_COLLAPSE, missing in older headers
  return advise_huge_pages(begin, bytes, kCollapse);
}

// Aligns large memory to a huge page, so few bytes lie outside huge pages.
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

// Tables with an entry for every rank or every pair, of which few are ever used: zeroed memory that
// the kernel allocates page by page at the first write.

// Entries that a vector makes without a value are zeros and are not touched; member defaults do not
// apply. A vector must not shrink and grow again within its capacity: its old entries are not
// zeros.
template <class T>
struct ZeroedAllocator {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>,
                "entries are used that nobody has made");
  using value_type = T;

  ZeroedAllocator() = default;
  template <class U>
  ZeroedAllocator(const ZeroedAllocator<U>&) noexcept {}

  T* allocate(std::size_t count) {
    if (!is_large(count)) {
      T* const memory = std::allocator<T>().allocate(count);
      std::memset(static_cast<void*>(memory), 0, count * sizeof(T));
      return memory;
    }
    void* const memory = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    if (!is_large(count)) return std::allocator<T>().deallocate(memory, count);
    munmap(memory, count * sizeof(T));
  }
  template <class U>
  void construct(U*) noexcept {}
  template <class U, class... Args>
  void construct(U* at, Args&&... args) {
    new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
  }
  bool operator==(const ZeroedAllocator&) const = default;

  // True if a table of `count` entries has its own pages.
  static bool is_large(std::size_t count) {
    constexpr std::size_t kLarge = std::size_t{16} << 10;
    return count >= kLarge / sizeof(T);
  }
};

template <class T>
using ZeroedVector = std::vector<T, ZeroedAllocator<T>>;

// The bytes of memory that the table has taken so far.
template <class T>
std::size_t taken_bytes(const ZeroedVector<T>& table) {
  const std::size_t bytes = table.capacity() * sizeof(T);
  if (!ZeroedAllocator<T>::is_large(table.capacity())) return bytes;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  constexpr std::size_t kAtOnce = 1024;
  unsigned char there[kAtOnce];
  std::size_t taken = 0;
  for (std::size_t begin = 0; begin < bytes; begin += kAtOnce * page) {
    const std::size_t length = std::min(bytes - begin, kAtOnce * page);
    auto* const at = reinterpret_cast<std::byte*>(const_cast<T*>(table.data())) + begin;
    if (mincore(at, length, there) != 0) return bytes;
    for (std::size_t i = 0; i < (length + page - 1) / page; ++i) taken += (there[i] & 1) * page;
  }
  return taken;
}

}  // namespace rankine
