#include "engine/api/choose.h"

#include <algorithm>

namespace rankine {
namespace {

using enum Collective;

// Rooted collectives take one round up to here. Above, a reduce is faster in two, in which all
// ranks add up (2, 4 and 8 ranks: 0.7 to 0.9, 0.3 to 0.7 and 0.15 to 0.6 of the time of one round
// or of a chain), and so is a broadcast to more ranks than can read from one at full speed (between
// 4 and 8 on two cores one round takes 0.5 to 0.9 of two).
constexpr std::size_t kOneRound = std::size_t{64} << 10;
constexpr int kReadersOfOne = 8;

// A round costs a synchronisation, and a vector read twice costs bandwidth: one shot for small
// vectors, then two. Between two ranks one shot goes further: a line is read by one other core
// only, and the halves of a vector can be handed over well from 4 KiB on (string_copy.h). (8 to 64
// KiB, two shots over one: fresh 0.95 to 1.03 on far cores, 0.75 on near ones; warm 0.8 to 1.) In
// place it does not, since the result may not overwrite what others still read. More ranks post
// what they add up in one shot, and read N vectors each.
std::size_t one_shot_up_to(int ranks, Buffers buffers) {
  if (ranks > 2)
    return std::min((std::size_t{32} << 10) / static_cast<std::size_t>(ranks), board_bytes(ranks));
  return buffers == Buffers::apart ? std::size_t{4} << 10 : board_bytes(ranks);
}

// Up to here each rank may hear from each: N (N - 1) messages are planned in a tenth of a second. A
// plan for 1024 ranks would have two million, a hundred MiB of them, more than a communicator keeps
// (kSharedPlanBytes); and what relays costs rounds, which is little where so many ranks share what
// cores there are (128 ranks on two: two shots and a tree take the same time from 64 KiB on).
constexpr int kAllHearAll = 256;
// Vectors up to here are not worth a tree's log2 N rounds: one leader per group does it in three.
constexpr std::size_t kLeaders = std::size_t{4} << 10;

// For more ranks than that, nothing but all_to_all has messages between all pairs.
std::string_view name_among_many(Collective collective, std::size_t bytes) {
  switch (collective) {
    case all_reduce:
      return bytes <= kLeaders ? "leaders" : "binary_tree";
    case all_gather:
      return "bruck";
    case reduce_scatter:
      return "two_level";
    case broadcast:
    case Collective::reduce:
      return bytes <= kOneRound ? "linear" : "binary_tree";
    default:
      return "";
  }
}

// In shared memory every rank reaches every other directly, so nothing is gained by relaying what
// is small. Figures: bench/rivals and rankine tune on two cores, 2 ranks, and 4 and 8
// oversubscribed, 2026-11-22.
std::string_view name_for(Collective collective, int ranks, std::size_t bytes, Buffers buffers) {
  if (ranks > kAllHearAll) {
    if (const auto name = name_among_many(collective, bytes); !name.empty()) return name;
  }
  switch (collective) {
    case all_reduce:
      return bytes <= one_shot_up_to(ranks, buffers) ? "direct_one_shot" : "direct_two_shot";
    case all_gather:
    case reduce_scatter:
    case all_to_all:  // each byte is copied once, by whom it is for
      return "direct";
    case broadcast:
      return bytes <= kOneRound || ranks <= kReadersOfOne ? "linear" : "direct_two_shot";
    case Collective::reduce:
      return bytes <= kOneRound ? "linear" : "direct_two_shot";
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
    if (line.collective != collective || !line.other_bits.empty()) continue;
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
