// Where a rank that is a process has its payloads (payload.h): a part of the memory that all
// processes have mapped at the same address, so that others read and write them in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "engine/api/processes/name.h"
#include "engine/base/status.h"
#include "numa/enforcement.h"

namespace rankine {

// One rank's, by one thread at a time, but for holds().
class ProcessPayloads {
 public:
  // `room` bytes from `base` on, which are at that offset of the file: whole pages, of nobody else;
  // both begin with a huge page.
  // The file must outlive this.
  ProcessPayloads(std::byte* base, std::size_t room, const KeptFile& file, std::size_t offset)
      : base_(base), room_(room), file_(file), offset_(offset) {}
  ProcessPayloads(const ProcessPayloads&) = delete;
  ProcessPayloads& operator=(const ProcessPayloads&) = delete;

  // Zeroes in whole pages, at least one, of the calling thread's node where the machine can; from a
  // huge page's length on in huge ones, where the kernel can. The first place that is wide enough.
  // Errors (out_of_memory): no such place, and a machine that has
  // no pages.
  Result<std::byte*> allocate(std::size_t bytes);
  // What allocate() gave, once: its pages go back to the machine.
  void free(const void* base) noexcept;

  // Whether all of that lies here. Of no bytes it always does. May be asked at any time.
  bool holds(const void* from, std::size_t bytes) const noexcept {
    // (Further than all the room, where it begins before.)
    const std::size_t offset =
        reinterpret_cast<std::uintptr_t>(from) - reinterpret_cast<std::uintptr_t>(base_);
    return bytes == 0 || (offset <= room_ && bytes <= room_ - offset);
  }
  std::size_t room() const noexcept { return room_; }
  // Of what allocate() gave, in whole pages.
  std::size_t bytes_of(const void* base) const { return in_use_.at(offset_of(base)).bytes; }
  // Whether that is in huge ones; not asked of what is shorter than one.
  const Enforcement& huge_pages_of(const void* base) const {
    return in_use_.at(offset_of(base)).huge_pages;
  }

 private:
  struct Piece {
    std::size_t bytes = 0;
    Enforcement huge_pages{};
  };
  std::size_t offset_of(const void* base) const noexcept {
    return static_cast<std::size_t>(static_cast<const std::byte*>(base) - base_);
  }

  std::byte* const base_;
  const std::size_t room_;
  const KeptFile& file_;
  const std::size_t offset_;
  std::map<std::size_t, Piece> in_use_{};  // by where they begin
};

}  // namespace rankine
