// The board of a rank: where it posts what several others want of it, once for all of them, and
// which it uses in turn with another.
//
//   half   flag | bytes | fingerprint | data ...     64-byte aligned, in the poster's memory
//
// The header is a mailbox slot's. Data that fit into its line stand there; larger ones begin on the
// next line. Posts are numbered, modulo 2^32, from the communicator's first call on; every rank
// makes the same posts, number n in half n & 1, with the flag n + 1.
//
// Nobody waits for its readers, since everybody hears from everybody in each post: who has found
// all others' posts number n knows that they are done with number n - 1, whose half is used next.
// So a rank is at most one post ahead of another, and nobody's buffers are read when a call ends.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/exec/mailbox.h"
#include "engine/exec/plan.h"

namespace rankine {

static_assert(sizeof(SlotHeader) == kBoardHeader);

struct Board {
  std::byte* halves = nullptr;  // two of `stride` bytes, zeroed, aligned to a cache line
  std::uint32_t stride = 0;

  SlotHeader& half(std::uint32_t number) const {
    return *reinterpret_cast<SlotHeader*>(halves + std::size_t{number & 1} * stride);
  }
  std::byte* at(std::uint32_t number, std::size_t offset) const {
    return halves + std::size_t{number & 1} * stride + offset;
  }
};

// Of a half that holds so many bytes of data.
constexpr std::uint32_t board_stride(std::size_t bytes) {
  return static_cast<std::uint32_t>(kCacheLine +
                                    (bytes + kCacheLine - 1) / kCacheLine * kCacheLine);
}

}  // namespace rankine
