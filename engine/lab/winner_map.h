// Finds the cheapest algorithm for each number of ranks and size on a modelled network, and draws
// the result: the data and the picture of `rankine map`.
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

// For each number of ranks: the winners, each with the size from which it wins.
Table winners_table(const WinnerMap& map);

// A self-contained SVG picture: sizes run to the right and ranks upwards; each algorithm has a
// colour, which is paler if the lead is small; legend and scales are included.
std::string to_svg(const WinnerMap& map);

}  // namespace rankine::tools
