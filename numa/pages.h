// Page sizes and what the kernel says about transparent huge pages.
#pragma once

#include <cstddef>
#include <string>

namespace rankine {

std::size_t page_bytes() noexcept;

// Size of a transparent huge page in bytes; 2 MiB where the kernel does not tell. `root` is put
// before /sys.
std::size_t huge_page_bytes(const std::string& root = "");

// True where the administrator switched transparent huge pages off ("never"): there
// madvise(MADV_HUGEPAGE) still answers 0, so its result alone proves nothing. False where the
// kernel does not tell.
bool huge_pages_switched_off(const std::string& root = "");

}  // namespace rankine
