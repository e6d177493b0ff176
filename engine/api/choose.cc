#include "engine/api/choose.h"

#include <algorithm>

namespace rankine {
namespace {

using enum Collective;

// In shared memory every rank reaches every other directly, so nothing is gained by relaying what
// is small: a round costs a synchronisation, and a vector read twice costs bandwidth. Figures:
// rankine tune on two cores, warm and fresh, apart and in place, 2 ranks and 4 and 8
// oversubscribed, 2026-11-21.
std::string_view name_for(Collective collective, int ranks, std::size_t bytes) {
  constexpr std::size_t kDirectTree = 64 * 1024;  // linear up to here: the chain takes 3 to 6 times
  switch (collective) {
    case all_reduce: {
      // Among two, one shot moves no more bytes than two shots do: with readers that pull, up to
      // 512 KiB, it costs 1.8 times the best at worst, two shots 6.5 times.
      const std::size_t one_shot = ranks <= 2 ? 512 * 1024 : 2048;
      return bytes <= one_shot ? "direct_one_shot" : "direct_two_shot";
    }
    case all_gather:
    case reduce_scatter:
    case all_to_all:
      return "direct";
    case broadcast:
    case Collective::reduce:
      return bytes <= kDirectTree ? "linear" : "chain";
    case gather:
    case scatter:
      return "linear";
    default:
      return "";
  }
}

}  // namespace

const Algorithm& default_algorithm(Collective collective, int ranks, std::size_t bytes) {
  if (const Algorithm* line = find_algorithm(collective, name_for(collective, ranks, bytes))) {
    return *line;
  }
  // No rule: the first of the catalogue that takes this N.
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
