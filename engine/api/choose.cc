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
      // Among two, one shot reads no more bytes from the other core than two shots do: with readers
      // that pull it costs 1.8 times the best at worst up to 512 KiB, two shots 6.5 times (rankine
      // tune, warm and fresh, apart and in place, 2026-11-21).
      if (bytes <= (ranks <= 2 ? 524288U : 2048U)) return "direct_one_shot";
      return "direct_two_shot";
    case all_gather:
    case reduce_scatter:
      return "direct";
    case broadcast:
    case Collective::reduce:
      return "chain";
    default:
      return "";
  }
}

}  // namespace

const Algorithm& default_algorithm(Collective collective, int ranks, std::size_t bytes) {
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

const Algorithm& choose_algorithm(Collective collective, int ranks, std::size_t bytes,
                                  const TuningTable* table) {
  const TuningRow* row = table != nullptr ? table->find(collective, ranks, bytes) : nullptr;
  return row != nullptr ? *row->algorithm : default_algorithm(collective, ranks, bytes);
}

int choose_segments(const Algorithm& algorithm, int ranks, std::size_t bytes) {
  if (!algorithm.takes("segments") || ranks <= 2) return 1;
  constexpr std::size_t kSegmentBytes = 64 * 1024;
  return static_cast<int>(std::clamp<std::size_t>(bytes / kSegmentBytes, 1, 64));
}

}  // namespace rankine
