// Memory between two pages that nobody may touch: an access outside it ends the test at once, also
// where no sanitizer looks (masked loads, streaming stores).
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

namespace rankine {

class GuardedPages {
 public:
  explicit GuardedPages(std::size_t bytes)
      : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))),
        size_((bytes + page_ - 1) / page_ * page_) {
    void* mapped = mmap(nullptr, size_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) ADD_FAILURE() << "mmap";
    base_ = static_cast<char*>(mapped);
    if (mprotect(begin(), size_, PROT_READ | PROT_WRITE) != 0) ADD_FAILURE() << "mprotect";
  }
  ~GuardedPages() { munmap(base_, size_ + 2 * page_); }
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;

  char* begin() const { return base_ + page_; }
  char* end() const { return begin() + size_; }

 private:
  std::size_t page_;
  std::size_t size_;  // between the guards
  char* base_;
};

}  // namespace rankine
