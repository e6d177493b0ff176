// Huge pages for what is large and about to be written: a fault per 2 MiB in place of one per 4
// KiB.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rankine {

// For memory that nobody has written to yet, however it was come by. Nothing where it is too little
// to matter, or where the kernel has no huge pages to give.
inline void prefer_huge_pages(const void* begin, std::size_t bytes) {
  constexpr std::size_t kPage = std::size_t{2} << 20;
  if (bytes < 2 * kPage) return;
  const auto at = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = (at + kPage - 1) / kPage * kPage;
  const std::uintptr_t end = (at + bytes) / kPage * kPage;
  madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

// Room for so many elements, of a vector that has none yet.
template <class T>
void reserve_huge(std::vector<T>& elements, std::size_t count) {
  elements.reserve(count);
  prefer_huge_pages(elements.data(), count * sizeof(T));
}

}  // namespace rankine
