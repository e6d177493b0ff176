// Tables with an entry for every rank, or every pair, of which few are ever used: memory of zeroes
// that is taken page by page, where somebody first writes.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace rankine {

// Entries that a vector makes without a value are zeroes, and are not touched: their own defaults
// do not count. A vector must not grow again within its capacity: what stood there is no zero.
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

  // Whether it has pages of its own.
  static bool is_large(std::size_t count) {
    constexpr std::size_t kLarge = std::size_t{16} << 10;
    return count >= kLarge / sizeof(T);
  }
};

template <class T>
using ZeroedVector = std::vector<T, ZeroedAllocator<T>>;

// Of memory, so far.
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
