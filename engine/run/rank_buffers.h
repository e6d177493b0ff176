// The memory that a rank brings to a call and gets from it, and when two ranks may not bring what
// they do: an output belongs to its rank alone, so it overlaps with no buffer of another one.
// Inputs may be shared, since nobody stores there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/base/splitmix.h"

namespace rankine {

struct Buffer {
  const std::byte* begin = nullptr;
  std::size_t bytes = 0;  // none: it overlaps with nothing, wherever it begins
};

inline bool overlap(const Buffer& a, const Buffer& b) noexcept {
  if (a.bytes == 0 || b.bytes == 0) return false;
  const auto i = reinterpret_cast<std::uintptr_t>(a.begin);
  const auto j = reinterpret_cast<std::uintptr_t>(b.begin);
  return i - j < b.bytes || j - i < a.bytes;
}
std::string to_string(const Buffer& buffer);  // "(0x7f001000, 64 bytes)"

struct RankBuffers {
  Buffer in, out;
};

// Whether two ranks bring what they may not.
inline bool share(const RankBuffers& a, const RankBuffers& b) noexcept {
  return overlap(a.out, b.out) || overlap(a.out, b.in) || overlap(a.in, b.out);
}

// Of a rank's buffers, as much as fits into the header of a small message: a hash of where its
// output begins or, where it gets nothing, its input. Marks that agree are a suspicion and no more;
// keeps_apart() in sharing.h then looks at the addresses.
struct Mark {
  std::uint16_t bits = 0;  // odd: of an output
};
// What a rank compares the others' marks with.
struct Marks {
  static constexpr std::uint32_t kNone = 0x10000;
  Mark own;
  std::uint32_t output = kNone;  // of a rank that brings or gets our output
  std::uint32_t input = kNone;   // of one that gets what we bring
  bool suspect(Mark theirs) const noexcept {
    return (theirs.bits | 1U) == output || theirs.bits == input;
  }
};

inline Marks marks_of(const RankBuffers& mine) noexcept {
  const auto hash = [](const std::byte* begin) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(begin) * kSplitMixStep >>
                                      48);
  };
  const std::uint32_t in = hash(mine.in.begin), out = hash(mine.out.begin) | 1;
  Marks marks;
  if (mine.in.bytes > 0) {
    marks.own.bits = static_cast<std::uint16_t>(in & ~1U);
    marks.input = in | 1;
  }
  if (mine.out.bytes > 0) {
    marks.own.bits = static_cast<std::uint16_t>(out);
    marks.output = out;
  }
  return marks;
}

}  // namespace rankine
