// What a call is, in 64 bits: ranks whose calls disagree find out before they touch each other's
// memory. Every field but the count (16 bits of a hash) can be read back for the error's text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "algorithms/schedule/collective.h"
#include "engine/base/numbers.h"
#include "engine/run/kernels/types.h"
#include "engine/run/plan.h"

namespace rankine {

struct Fingerprint {
  std::uint64_t bits = 0;

  Collective collective() const { return static_cast<Collective>(field(0, 4)); }
  DataType type() const { return static_cast<DataType>(field(4, 4)); }
  ReduceOp op() const { return static_cast<ReduceOp>(field(8, 4)); }
  bool in_place() const { return field(12, 1) != 0; }
  Transport transport() const { return static_cast<Transport>(field(13, 2)); }
  int root() const { return static_cast<int>(field(16, 12)); }
  int algorithm() const { return static_cast<int>(field(28, 8)); }    // line of the catalogue
  int call() const { return static_cast<int>(field(36, 8)); }         // number modulo 256
  int count_hash() const { return static_cast<int>(field(44, 20)); }  // counts, parameters, tag

  bool operator==(const Fingerprint&) const = default;

 private:
  std::uint64_t field(int shift, int width) const {
    return (bits >> shift) & ((std::uint64_t{1} << width) - 1);
  }
};

// Fields other than the call number, which with_call() adds per call.
Fingerprint make_fingerprint(Collective collective, DataType type, ReduceOp op, bool in_place,
                             Transport transport, int root, int algorithm,
                             std::uint64_t count_hash);

inline Fingerprint with_call(Fingerprint print, std::uint32_t call) {
  return {print.bits | static_cast<std::uint64_t>(call & 0xff) << 36};
}

// With what else ranks must agree on, if that is not 0 (CallOptions::tag).
inline Fingerprint with_tag(Fingerprint print, std::uint64_t tag) {
  return {print.bits ^ (tag * kSplitMixStep) >> 44 << 44};
}

std::string describe(Fingerprint print);  // "all_reduce f32 sum"

// A call as one rank makes it.
struct Called {
  Fingerprint print;
  Rank rank = 0;
  std::uint64_t count = 0;
  const char* algorithm = nullptr;  // its name; nullptr: not known
};

// The first field in which two calls differ: "operation is sum at rank 0 and max at rank 3".
std::string difference(const Called& a, const Called& b);

// The memory that a rank brings to a call and gets from it, and when two ranks may not bring what
// they do: an output belongs to its rank alone, so it overlaps with no buffer of another one.
// Inputs may be shared, since nobody stores there.

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
