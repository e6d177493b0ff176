// In which brackets contributions are added up: what the last bits of a sum of floats depend on.
//
// Everything that may differ from call to call without changing what a schedule says (size, offset,
// transport, in place or apart, who stores what where, in how many parts) leaves its brackets as
// they are: every version of a block (versions.h) is made by one fold of all its sources, in the
// order of their lowest ranks, and kept in the type. So they are read from the versions of the very
// plan that will run.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/compile/versions.h"

namespace rankine {

enum class Bracket : std::uint8_t {
  // Every sum is one fold over all ranks that it is of, 0 to N - 1 or less: the bits of a serial
  // loop, which of floats of
  // 16 and 8 bits is rounded once (reduce.h).
  flat,
  // Every sum is that of the binary tree over the ranks whose nodes are the runs of 2^k ranks that
  // begin at multiples of 2^k, without the ranks from N on; each node is rounded to the type.
  // Whoever adds up runs of 2^k neighbours beforehand in these brackets leaves the rest to be added
  // in these brackets, among so many fewer.
  canonical,
};

std::string_view in_words(Bracket bracket);  // "one fold in the order of the ranks"

struct Brackets {
  bool flat = true, canonical = true;  // among two ranks both
  bool are(Bracket bracket) const { return bracket == Bracket::flat ? flat : canonical; }
};

Brackets brackets_of(const Versions& versions);

}  // namespace rankine
