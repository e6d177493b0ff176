// What a call is, in 64 bits: ranks whose calls disagree find out before they touch each other's
// memory. Every field but the count (16 bits of a hash) can be read back for the error's text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "algorithms/schedule/collective.h"
#include "engine/base/splitmix.h"
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

}  // namespace rankine
