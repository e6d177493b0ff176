// The double ring barrier: a token goes round twice. After the first time round the last rank knows
// that all have come; the second time round tells the others.
// Open MPI (coll/base, barrier double_ring).
//   p ranks    k round
#pragma once

#include "algorithms/schedule/combine.h"

namespace rankine {

inline Schedule double_ring_barrier(int p) {
  return {p, 1, 2 * (p - 1), [](int k, Send send) { send(k, k + 1, block(0), reduce); }};
}

}  // namespace rankine
