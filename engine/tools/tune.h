// rankine tune: measures this machine's contenders and costs, and writes the table by which calls
// choose their algorithms from then on (engine/api/tuning/tuning.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "engine/tools/arguments.h"

namespace rankine::tools {

struct TuneArguments {
  std::vector<int> ranks;               // empty: 2 to the usable cores
  std::vector<Collective> collectives;  // empty: all that have several algorithms
  std::size_t min_bytes = 8, max_bytes = std::size_t{64} << 20;
  int step_factor = 4;
  std::chrono::milliseconds budget{60'000};
  int rounds = 0;      // of choosing and of judging each; 0: as many as the budget allows
  bool check = false;  // measure the regret of the table that is there, and write nothing
  bool sizes = false;  // a line per size
  bool json = false;
};

Result<Exit> tune(const TuneArguments& arguments, Console& console);

Subcommand add_tune(Command tool);

}  // namespace rankine::tools
