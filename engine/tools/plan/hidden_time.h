// How much of a line of equal collectives is waited for, that start one by one while something is
// computed: gradients in buckets behind a backward pass.
#pragma once

#include <algorithm>

namespace rankine::tools {

// Work of `computing` seconds makes `calls` pieces evenly, the last at its end; each piece's
// collective takes `each` and begins when its piece is ready and the one before has ended. The
// seconds from the end of the work to the end of the last collective: what the last one needs, or
// what all need beyond the time that there was since the first piece.
inline double exposed_behind(double computing, double calls, double each) {
  return std::max(each, calls * each - (calls - 1) * computing / calls);
}

}  // namespace rankine::tools
