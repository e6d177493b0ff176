// Which algorithm is the cheapest, over numbers of ranks and sizes, on a modelled network: the data
// of `rankine map` and its picture.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/cli/table.h"
#include "engine/network/predict.h"

namespace rankine::tools {

struct Winner {
  const Algorithm* algorithm = nullptr;
  double seconds = 0;
  double lead = 1;  // time of the second best over time of the best; at least 1
};

struct WinnerMap {
  Collective collective = Collective::all_reduce;
  Fabric fabric;
  std::vector<int> ranks;            // one row each
  std::vector<std::uint64_t> sizes;  // one column each, rising
  std::vector<Winner> cells;         // [row * sizes.size() + column]

  const Winner& at(std::size_t row, std::size_t column) const {
    return cells[row * sizes.size() + column];
  }
};

struct MapRequest {
  Collective collective = Collective::all_reduce;
  Fabric fabric;
  std::vector<int> ranks;
  std::vector<std::uint64_t> sizes;
  std::vector<const Algorithm*> contenders;  // empty: all of the collective
  SimulateOptions simulate;
};

// Fills the map on all cores. `progress` is called before each simulation and after each cell with
// cells done and cells in all, from one thread at a time.
Result<WinnerMap> make_winner_map(const MapRequest& request,
                                  const std::function<void(std::size_t, std::size_t)>& progress);

// From which size on which one wins, among each number of ranks.
Table winners_table(const WinnerMap& map);

// A self-contained picture: sizes to the right, ranks upwards, a colour per algorithm, paler where
// the lead is small, with legend and scales.
std::string to_svg(const WinnerMap& map);

}  // namespace rankine::tools
