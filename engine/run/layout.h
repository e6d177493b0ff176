// Where the blocks of a schedule lie in the users' buffers.
//
// A block has one size and, at the ranks where it starts (Goal::starts), one offset in their input;
// at the ranks that need it (Goal::needs), one offset in their output. Neither depends on the rank.
#pragma once

#include <cstddef>
#include <span>

#include "algorithms/schedule/collective.h"
#include "engine/base/huge_pages.h"

namespace rankine {

struct BlockHome {
  std::size_t input = 0;   // bytes from the start of an input that holds the block
  std::size_t output = 0;  // bytes from the start of an output that holds it
  std::size_t bytes = 0;
};

struct Layout {
  std::size_t element_bytes = 1;
  HugeVector<BlockHome> blocks;  // one per block of the schedule
};

// Borders between the parts of one natural block: `plain` gives the first M mod B parts one element
// more (what users see and the model uses); `cache_lines` moves them to multiples of 64 bytes, so
// that no two ranks store into one line (two ranks on one line cost 15 to 25 %).
enum class Borders : unsigned char { plain, cache_lines };

// counts[i]: elements of natural block i (natural_blocks(collective, N) of them).
Layout make_layout(const Goal& goal, std::span<const std::size_t> counts, std::size_t element_bytes,
                   Borders borders);

// Bytes of the input and the output buffer of rank r.
std::size_t input_bytes(const Layout& layout, const Goal& goal, Rank r);
std::size_t output_bytes(const Layout& layout, const Goal& goal, Rank r);

}  // namespace rankine
