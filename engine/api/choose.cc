#include "engine/api/choose.h"

#include <algorithm>

namespace rankine {
namespace {

using enum Collective;

// Rooted collectives tell everybody directly up to here: the chain takes 3 to 6 times as long.
constexpr std::size_t kDirectTree = std::size_t{64} << 10;

// A round costs a synchronisation, and a vector read twice costs bandwidth: one shot for small
// vectors, then two. Between two ranks one shot goes further: a line is read by one other core
// only. (Fresh, 64 to 256 KiB: 0.8 to 0.9 of two shots' time on far cores, 1.15 on near ones.) In
// place it does not, since the result may not overwrite what others still read. More ranks post
// what they add up in one shot, and read N vectors each.
std::size_t one_shot_up_to(int ranks, Buffers buffers) {
  if (ranks > 2)
    return std::min((std::size_t{32} << 10) / static_cast<std::size_t>(ranks), board_bytes(ranks));
  return buffers == Buffers::apart ? std::size_t{256} << 10 : board_bytes(ranks);
}

// In shared memory every rank reaches every other directly, so nothing is gained by relaying what
// is small. Figures: bench/rivals and rankine tune on two cores, 2 ranks, and 4 and 8
// oversubscribed, 2026-11-22.
std::string_view name_for(Collective collective, int ranks, std::size_t bytes, Buffers buffers) {
  switch (collective) {
    case all_reduce:
      return bytes <= one_shot_up_to(ranks, buffers) ? "direct_one_shot" : "direct_two_shot";
    case all_gather:
    case reduce_scatter:
    case all_to_all:  // each byte is copied once, by whom it is for
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

std::size_t board_bytes(int ranks) {
  if (ranks <= 2) return 1024;
  if (ranks <= 16) return 8192;
  const auto n = static_cast<std::size_t>(ranks);
  return std::max<std::size_t>(64, (std::size_t{1} << 20) / (n * n));
}

const Algorithm& default_algorithm(Collective collective, int ranks, std::size_t bytes,
                                   Buffers buffers) {
  if (const Algorithm* line =
          find_algorithm(collective, name_for(collective, ranks, bytes, buffers))) {
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
                                  const TuningTable* table, Buffers buffers) {
  // Tables say of all-reduces how they do out of place; in place another one is best.
  const bool covered = collective != all_reduce || buffers == Buffers::apart;
  const TuningRow* row =
      table != nullptr && covered ? table->find(collective, ranks, bytes) : nullptr;
  return row != nullptr ? *row->algorithm : default_algorithm(collective, ranks, bytes, buffers);
}

int choose_segments(const Algorithm& algorithm, int ranks, std::size_t bytes) {
  if (!algorithm.takes("segments") || ranks <= 2) return 1;
  constexpr std::size_t kSegmentBytes = 64 * 1024;
  return static_cast<int>(std::clamp<std::size_t>(bytes / kSegmentBytes, 1, 64));
}

}  // namespace rankine
