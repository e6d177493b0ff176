// The board of a rank: where it posts what several others want of it, once for all of them, in two
// halves in turn.
//
//   half   header (post.h) | data ...     64-byte aligned, in the poster's memory
//
// Data that fit into the header's line stand there, larger ones begin on the next line. Posts are
// numbered, modulo 2^32, over the life of the communicator; all ranks make the same ones. Number n
// is in half n & 1, with the flag n + 1.
//
// Nobody waits for readers: everybody hears from everybody in each post, so whoever has found all
// posts number n knows that all have done with number n - 1, whose half is written next. A rank is
// at most one post ahead of another, and nobody's own buffers are read when its call ends.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/base/cache_line.h"
#include "engine/run/post.h"

namespace rankine {

struct Board {
  std::byte* halves = nullptr;  // two of `stride` bytes, zeroed, aligned to a cache line
  std::uint32_t stride = 0;

  std::byte* at(std::uint32_t number, std::size_t offset) const {
    return halves + std::size_t{number & 1} * stride + offset;
  }
  PostHeader& half(std::uint32_t number) const {
    return *reinterpret_cast<PostHeader*>(at(number, 0));
  }
};

// Of a half that holds so many bytes of data.
constexpr std::uint32_t board_stride(std::size_t data_bytes) {
  return static_cast<std::uint32_t>(kCacheLine + whole_lines(data_bytes));
}

}  // namespace rankine
