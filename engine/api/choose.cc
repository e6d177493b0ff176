#include "engine/api/choose.h"

#include <algorithm>

namespace rankine {
namespace {

using enum Collective;

std::string_view name_for(Collective collective, int ranks, std::size_t bytes) {
  switch (collective) {
    case all_reduce:
      // In shared memory a round costs a synchronisation and a vector read twice costs bandwidth:
      // one shot while the whole vectors fit near the core, then two.
      if (bytes <= (ranks <= 2 ? 16384U : 2048U)) return "direct_one_shot";
      return "direct_two_shot";
    case all_gather:
    case reduce_scatter:
    case all_to_all:  // each byte is copied once, by whom it is for
      return "direct";
    case broadcast:
    case Collective::reduce:
      return "chain";
    default:
      return "";
  }
}

}  // namespace

const Algorithm& choose_algorithm(Collective collective, int ranks, std::size_t bytes) {
  if (const Algorithm* line = find_algorithm(collective, name_for(collective, ranks, bytes))) {
    return *line;
  }
  // Nothing tuned: the first of the catalogue that takes this N.
  const Algorithm* first = nullptr;
  for (const Algorithm& line : catalogue()) {
    if (line.collective != collective) continue;
    if (first == nullptr) first = &line;
    Params params;
    params.ranks = ranks;
    if (!line.refusal(params)) return line;
  }
  return *first;
}

int choose_segments(const Algorithm& algorithm, int ranks, std::size_t bytes) {
  if (!algorithm.takes("segments") || ranks <= 2) return 1;
  constexpr std::size_t kSegmentBytes = 64 * 1024;
  return static_cast<int>(std::clamp<std::size_t>(bytes / kSegmentBytes, 1, 64));
}

}  // namespace rankine
