// Sizes and bandwidths by nccl-tests' conventions, and what busbw is held against.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>

#include <fmt/format.h>

#include "algorithms/schedule/collective.h"
#include "engine/network/fabric.h"

namespace rankine::tools {

// A size is the whole vector for all_reduce, broadcast, reduce, the scans and send_recv, all ranks'
// blocks together for all_gather, reduce_scatter, gather and scatter, and one rank's send buffer
// for all_to_all. A call's count is per block: this many times fewer.
inline std::size_t counts_per_size(Collective collective, int ranks) {
  return natural_blocks(collective, ranks) == 1 ? 1 : static_cast<std::size_t>(ranks);
}

// The size of natural blocks of so many bytes each (collective.h): all together, and of all_to_all
// the largest send buffer.
inline std::uint64_t size_of_counts(Collective collective, int ranks,
                                    std::span<const std::uint64_t> counts) {
  const std::size_t per_size =
      collective == Collective::all_to_all ? static_cast<std::size_t>(ranks) : counts.size();
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < counts.size(); i += per_size) {
    const auto part = counts.subspan(i, per_size);
    most = std::max(most, std::accumulate(part.begin(), part.end(), std::uint64_t{0}));
  }
  return most;
}

// The count of a call of at most `bytes`, rounded down; one element where that leaves none.
inline std::size_t count_for(Collective collective, int ranks, std::size_t bytes,
                             std::size_t element_bytes) {
  if (bytes == 0 || collective == Collective::barrier) return 0;
  const std::size_t count = bytes / element_bytes / counts_per_size(collective, ranks);
  return std::max<std::size_t>(1, count);
}

// busbw = algbw times this: what the busiest link would have to carry at least. Lu (Collective
// Algorithms, appendix D) has (N-1)/N for broadcast and calls that nccl-tests' convention;
// nccl-tests has 1, and so do we.
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
    case Collective::scan:  // one vector in and one out at all ranks but the first and the last
    case Collective::exscan:
      return 1;
    case Collective::barrier:
      return 0;
  }
  return 1;
}

// For helps and notes.
inline constexpr const char* kBusbwConvention =
    "busbw is algbw times nccl-tests' factor: 2(N-1)/N for all_reduce, (N-1)/N for all_gather, "
    "reduce_scatter, all_to_all, gather and scatter, 1 for broadcast, reduce and send_recv (Lu, "
    "Collective Algorithms, appendix D: (N-1)/N for broadcast, too). scan and exscan, which "
    "nccl-tests has not: 1, since most ranks take one vector in and hand one on.\n";
inline constexpr const char* kPeakConvention =
    "eta: busbw over the peak, Lu's eta_beta; the peak is what all ports of a rank carry in one "
    "direction, ports times bandwidth, over the links within groups where there are such.\n";

// The peak of a fabric that wired_for() gave, in bytes per second; none where a link has no limit.
inline std::optional<double> peak_of(const Fabric& fabric) {
  const Rational beta = fabric.group == 1 ? fabric.between.beta : fabric.link.beta;
  if (beta == 0) return std::nullopt;
  return (Rational(fabric.ports) / beta).to_double();
}

// busbw, in bytes per second like the peak, over it; none where there is no peak.
inline std::optional<double> eta_of(double busbw, const std::optional<double>& peak) {
  if (!peak) return std::nullopt;
  return busbw / *peak;
}
inline std::string eta_text(const std::optional<double>& eta) {
  return eta ? fmt::format("{:.1f}%", *eta * 100) : "-";
}

}  // namespace rankine::tools
