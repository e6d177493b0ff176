// rankine show: an algorithm drawn round by round.
#pragma once

#include <optional>
#include <string>

#include "algorithms/catalogue.h"
#include "engine/tools/arguments.h"
#include "engine/tools/console.h"

namespace rankine::tools {

struct ShowOptions {
  Collective collective = Collective::all_reduce;
  std::string algorithm;
  std::string skips;  // as skips_for() reads it
  Params params{.ranks = 4};
  std::optional<int> round;  // only this one
  bool transfers_only = false;
  std::string colour = "auto", lines = "auto";
  int width = 0;  // 0: of the terminal
  bool json = false;

  static constexpr int kMostRanks = 64;  // rows get wide
};

Subcommand add_show(CLI::App& tool);

Result<Exit> show(const ShowOptions& options, Console& console);

}  // namespace rankine::tools
