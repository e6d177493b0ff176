// Page sizes and what the kernel says about transparent huge pages.
#pragma once

#include <cstddef>
#include <string>

namespace rankine {

std::size_t page_bytes() noexcept;

// As many bytes, rounded up to whole pages.
inline std::size_t whole_pages(std::size_t bytes) noexcept {
  return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

// Size of a transparent huge page in bytes; 2 MiB where the kernel does not tell. `root` is put
// before /sys.
std::size_t huge_page_bytes(const std::string& root = "");

// True where the administrator switched transparent huge pages off ("never"): there
// madvise(MADV_HUGEPAGE) still answers 0, so its result alone proves nothing. False where the
// kernel does not tell.
bool huge_pages_switched_off(const std::string& root = "");

}  // namespace rankine
