// The board of a rank: where it posts what several others want of it, once for all of them, in two
// halves in turn.
//
//   half   header (post.h) | data ...     64-byte aligned
//
// Data that fit into the header's line stand there, larger ones begin on the next line. Posts are
// numbered, modulo 2^32, over the life of the communicator; all ranks make the same ones. Number n
// is in half n & 1, with the flag n + 1.
//
// Nobody waits for readers: everybody hears from everybody in each post, so whoever has found all
// posts number n knows that all have done with number n - 1, whose half is written next. A rank is
// at most one post ahead of another, and nobody's own buffers are read when its call ends.
//
// Two ranks have one half each, and exchange them: a rank writes post n + 1 where it has just read
// the other's post n. A line that is read where another core has modified it comes with the right
// to modify it, so each line crosses once a post; between two halves of one's own it has to be
// taken back from its reader first, and crosses twice.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/base/cache_line.h"
#include "engine/run/post.h"

namespace rankine {

struct Board {
  std::byte* halves[2] = {};  // zeroed at first, aligned to a cache line

  std::byte* at(std::uint32_t number, std::size_t offset) const {
    return halves[number & 1] + offset;
  }
  PostHeader& half(std::uint32_t number) const {
    return *reinterpret_cast<PostHeader*>(at(number, 0));
  }
};

// Of a half that holds so many bytes of data.
constexpr std::uint32_t board_stride(std::size_t data_bytes) {
  return static_cast<std::uint32_t>(kCacheLine + whole_lines(data_bytes));
}

// How many halves are in each rank's memory.
constexpr std::size_t halves_of_a_rank(int ranks) { return ranks == 2 ? 1 : 2; }

// Where a rank's post of that number is: in whose memory, and in which half there.
struct HalfPlace {
  std::size_t rank = 0, half = 0;
};
constexpr HalfPlace half_place(int ranks, std::size_t rank, std::uint32_t number) {
  const std::size_t turn = number & 1;
  return ranks == 2 ? HalfPlace{rank ^ turn, 0} : HalfPlace{rank, turn};
}

// A rank's board. halves_of(r): where the halves in rank r's memory begin, of `stride` bytes each.
template <class HalvesOf>
Board board_of(int ranks, std::size_t rank, std::size_t stride, const HalvesOf& halves_of) {
  const auto place = [&](std::uint32_t number) -> std::byte* {
    const HalfPlace there = half_place(ranks, rank, number);
    return halves_of(there.rank) + there.half * stride;
  };
  return {{place(0), place(1)}};
}

}  // namespace rankine
