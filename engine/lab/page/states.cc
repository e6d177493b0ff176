#include <fmt/format.h>

#include <cstdint>

#include "engine/lab/page/parts.h"
#include "engine/read/draw.h"

namespace rankine::tools {
namespace {

constexpr int kRanksPerWord = 32;

enum Flag : std::uint32_t { kComplete = 1, kNeeded = 2, kWritten = 4, kTwice = 8 };

Json transfer_json(const TransferView& t) {
  Json out = {{"from", t.from},
              {"to", t.to},
              {"what", t.what},
              {"act", t.kind == TransferKind::reduce ? "reduce" : "copy"}};
  if (t.what_plane != 0) out["what_plane"] = t.what_plane;
  if (t.where_plane != 0) out["where_plane"] = t.where_plane;
  return out;
}

// Writes a cell: the flags, then the words.
void write(const HoldingView& holding, double* cell, std::size_t words) {
  std::uint32_t flags = (holding.complete ? kComplete : 0U) | (holding.needed ? kNeeded : 0U) |
                        (holding.written ? kWritten : 0U);
  std::vector<std::uint32_t> bits(words, 0);
  for (const Rank r : holding.contributions) {
    std::uint32_t& word = bits[static_cast<std::size_t>(r / kRanksPerWord)];
    const std::uint32_t bit = std::uint32_t{1} << (r % kRanksPerWord);
    if ((word & bit) != 0) flags |= kTwice;
    word |= bit;
  }
  cell[0] = flags;
  for (std::size_t w = 0; w < words; ++w) cell[1 + w] = bits[w];
}

}  // namespace

Result<std::vector<double>> states_of(const Schedule& schedule, const CollectiveSpec& goal,
                                      Json& out) {
  const auto ranks = static_cast<std::size_t>(schedule.ranks);
  const auto blocks = static_cast<std::size_t>(schedule.blocks);
  const std::size_t places = static_cast<std::size_t>(schedule.planes) * blocks;
  const std::size_t words = (ranks + kRanksPerWord - 1) / kRanksPerWord;
  const std::size_t per_state = ranks * places * (1 + words);
  const std::size_t states = static_cast<std::size_t>(schedule.rounds) + 1;
  if (per_state > kMostStateNumbers / states) {
    return invalid_argument(
        fmt::format("{} rounds of {} ranks with {} blocks each are too many to show; fewer ranks "
                    "or segments are needed",
                    schedule.rounds, ranks, places));
  }
  out["ranks"] = schedule.ranks;
  out["blocks"] = schedule.blocks;
  out["planes"] = schedule.planes;
  out["words"] = words;
  Json& phases = out["phases"] = Json::array();
  for (const Phase& phase : schedule.phases) {
    phases.push_back({{"name", phase.name}, {"rounds", phase.rounds}});
  }
  Json& rounds = out["transfers"] = Json::array();
  std::vector<double> numbers(states * per_state, 0);
  double* state = numbers.data();
  for (const RoundView& view : view_rounds(schedule, goal)) {
    if (view.round >= 0) {
      Json& transfers = rounds.emplace_back(Json::array());
      for (const TransferView& t : view.transfers) transfers.push_back(transfer_json(t));
    }
    for (std::size_t r = 0; r < view.ranks.size(); ++r) {
      for (const HoldingView& holding : view.ranks[r]) {
        const std::size_t place = static_cast<std::size_t>(holding.plane) * blocks +
                                  static_cast<std::size_t>(holding.block);
        write(holding, state + (r * places + place) * (1 + words), words);
      }
    }
    state += per_state;
  }
  return numbers;
}

}  // namespace rankine::tools
