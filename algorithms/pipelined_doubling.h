// Doubling and halving with segments in flight. In every round a rank exchanges with another
// partner, so segments that follow one another a round apart are with as many partners at once as
// there are rounds: a rank wants log2 q ports, in the all-reduce by halves two to each partner.
// With fewer ports the segments queue, and nothing is gained but rounds ("partner-cycling"). Lu,
// "Collective Algorithms", 2026, appendices B.3 and C.4; what is pipelined: Thakur, Rabenseifner &
// Gropp, IJHPCA 19(1), 2005.
//   p ranks    q = 2^floor(log2 p) of them in the core (fold.h)    s segments
#pragma once

#include <utility>

#include "algorithms/halving_doubling.h"
#include "algorithms/recursive_doubling.h"
#include "algorithms/schedule/in_time.h"

namespace rankine {

inline Schedule segments_in_time(Schedule whole, int s, Segments stated) {
  return in_time(pipelined(std::move(whole), s, 1, stated));
}

inline Schedule pipelined_doubling_all_reduce(int p, int s) {
  return segments_in_time(recursive_doubling_all_reduce(p), s, Segments::youngest_first);
}

inline Schedule pipelined_halving_doubling_all_reduce(int p, int s) {
  return segments_in_time(halving_doubling_all_reduce(p), s, Segments::youngest_first);
}

// The oldest segments' messages are the longest.
inline Schedule pipelined_doubling_all_gather(int p, int s) {
  return segments_in_time(recursive_doubling_all_gather(p), s, Segments::oldest_first);
}

// Reversed after it is cut into segments: so the longest messages come first in every round.
inline Schedule pipelined_halving_reduce_scatter(int p, int s) {
  return dual(pipelined_doubling_all_gather(p, s));
}

}  // namespace rankine
