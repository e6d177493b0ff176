// Memory that the calls of a communicator pack into, one call at a time. Its address space is taken
// when all ranks agree on a kind of call, so that a call on which they have agreed finds it there;
// pages come as they are written.
#pragma once

#include <sys/mman.h>

#include <cstddef>

#include "engine/base/cache_line.h"

namespace rankine::mpi {

// Used by one thread at a time.
class Scratch {
 public:
  Scratch() = default;
  ~Scratch() { drop(); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // Room for so many bytes from now on. What was taken before is gone. False: the system refuses
  // it, and the room is what it was.
  bool have(std::size_t bytes) noexcept {
    if (bytes <= bytes_) return true;
    void* const made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) return false;
    drop();
    begin_ = static_cast<std::byte*>(made);
    bytes_ = bytes;
    return true;
  }
  // The next part, from a cache line on; nullptr: there is no room left.
  std::byte* take(std::size_t bytes) noexcept {
    if (bytes > bytes_ - used_) return nullptr;
    std::byte* const part = begin_ + used_;
    const std::size_t lines = whole_lines(bytes);
    used_ = lines < bytes_ - used_ ? used_ + lines : bytes_;
    return part;
  }
  // Nobody uses any part any more.
  void clear() noexcept { used_ = 0; }

 private:
  void drop() noexcept {
    if (begin_ != nullptr) munmap(begin_, bytes_);
    begin_ = nullptr;
    bytes_ = used_ = 0;
  }

  std::byte* begin_ = nullptr;
  std::size_t bytes_ = 0, used_ = 0;
};

}  // namespace rankine::mpi
