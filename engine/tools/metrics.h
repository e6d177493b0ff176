// Sizes and bandwidths by nccl-tests' conventions.
#pragma once

#include <algorithm>
#include <cstddef>

#include "algorithms/schedule/collective.h"

namespace rankine::tools {

// A size is the whole vector for all_reduce, broadcast, reduce and send_recv, all ranks' blocks
// together for all_gather, reduce_scatter, gather and scatter, and one rank's send buffer for
// all_to_all. A call's count is per block: this many times fewer.
inline std::size_t counts_per_size(Collective collective, int ranks) {
  return natural_blocks(collective, ranks) == 1 ? 1 : static_cast<std::size_t>(ranks);
}

// The count of a call of at most `bytes`, rounded down; one element where that leaves none.
inline std::size_t count_for(Collective collective, int ranks, std::size_t bytes,
                             std::size_t element_bytes) {
  if (bytes == 0 || collective == Collective::barrier) return 0;
  const std::size_t count = bytes / element_bytes / counts_per_size(collective, ranks);
  return std::max<std::size_t>(1, count);
}

// busbw = algbw times this: what the busiest link would have to carry at least.
inline double bus_factor(Collective collective, int ranks) {
  const double n = ranks;
  switch (collective) {
    case Collective::all_reduce:
      return 2 * (n - 1) / n;
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
    case Collective::gather:
    case Collective::scatter:
      return (n - 1) / n;
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::send_recv:
      return 1;
    case Collective::barrier:
      return 0;
  }
  return 1;
}

}  // namespace rankine::tools
