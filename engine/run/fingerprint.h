// A fingerprint describes a call in 64 bits, so that ranks whose calls differ detect it before they
// touch each other's memory. Every field except the count (20 bits of a hash) can be read back for
// the error's text. A mark does this for a rank's buffers in 16 bits.
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
  int algorithm() const { return static_cast<int>(field(28, 8)); }    // entry of the catalogue
  int call() const { return static_cast<int>(field(36, 8)); }         // number modulo 256
  int count_hash() const { return static_cast<int>(field(44, 20)); }  // counts, parameters, tag

  bool operator==(const Fingerprint&) const = default;

 private:
  std::uint64_t field(int shift, int width) const {
    return (bits >> shift) & ((std::uint64_t{1} << width) - 1);
  }
};

// All fields except the call number, which with_call() adds per call.
Fingerprint make_fingerprint(Collective collective, DataType type, ReduceOp op, bool in_place,
                             Transport transport, int root, int algorithm,
                             std::uint64_t count_hash);

inline Fingerprint with_call(Fingerprint print, std::uint32_t call) {
  return {print.bits | std::uint64_t{call} << 56 >> 20};
}

// Mixes in a further value on which ranks must agree, if not 0 (CallOptions::tag).
inline Fingerprint with_tag(Fingerprint print, std::uint64_t tag) {
  return {print.bits ^ (tag * kSplitMixStep) >> 44 << 44};
}

std::string describe(Fingerprint print);  // "all_reduce f32 sum"

// One rank's call.
struct Called {
  Fingerprint print;
  Rank rank = 0;
  std::uint64_t count = 0;
  const char* algorithm = nullptr;  // name; nullptr: unknown
};

// The first field in which two calls differ: "operation is sum at rank 0 and max at rank 3".
std::string difference(const Called& a, const Called& b);

// The buffers that a rank brings to a call. An output belongs to its rank alone, so it must not
// overlap any buffer of another rank. Inputs may be shared, since no rank stores there.

struct Buffer {
  const std::byte* begin = nullptr;
  std::size_t bytes = 0;  // 0: overlaps with nothing, wherever it begins
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

// True if two ranks' buffers overlap in a forbidden way.
inline bool share(const RankBuffers& a, const RankBuffers& b) noexcept {
  return overlap(a.out, b.out) || overlap(a.out, b.in) || overlap(a.in, b.out);
}

// A hash of the start of a rank's output or, if it has none, of its input; small enough for the
// header of a small message. Equal hashes are only a suspicion; check_no_alias() in wait.h then
// compares the addresses.
struct BufferHash {
  std::uint16_t bits = 0;  // odd: of an output
};
// The values with which a rank compares the others' hashes.
struct BufferHashes {
  static constexpr std::uint32_t kNone = 0x10000;
  BufferHash own;
  std::uint32_t output = kNone;  // of a rank that brings or gets our output
  std::uint32_t input = kNone;   // of a rank with our input as its output
  bool suspect(BufferHash theirs) const noexcept {
    return (theirs.bits | 1U) == output || theirs.bits == input;
  }
};

inline BufferHashes buffer_hashes_of(const RankBuffers& mine) noexcept {
  const auto hash = [](const std::byte* begin) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(begin) * kSplitMixStep >>
                                      48);
  };
  const std::uint32_t in = hash(mine.in.begin), out = hash(mine.out.begin) | 1;
  BufferHashes buffer_hashes;
  if (mine.in.bytes > 0) {
    buffer_hashes.own.bits = static_cast<std::uint16_t>(in & ~1U);
    buffer_hashes.input = in | 1;
  }
  if (mine.out.bytes > 0) {
    buffer_hashes.own.bits = static_cast<std::uint16_t>(out);
    buffer_hashes.output = out;
  }
  return buffer_hashes;
}

}  // namespace rankine
