// rankine verify: the catalogue, proved symbolically and compared with what its lines state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "engine/tools/arguments.h"
#include "engine/tools/console.h"

namespace rankine::tools {

struct VerifyArguments {
  std::optional<Collective> collective;
  std::string algorithms = "all";
  std::vector<int> ranks;              // empty: 1..130
  std::vector<int> segments;           // empty: the sweep's own
  std::string skips;                   // empty: the sweep's own; else as skips_for() reads it
  std::vector<int> levels;             // empty: the sweep's own; else only these
  std::vector<int> dims;               // empty: the sweep's own; else it alone, and its ranks
  std::optional<int> all_roots_up_to;  // else the sweep's own
  int threads = 0;                     // 0: all cores
  bool json = false;

  static constexpr int kDefaultRanksTo = 130;
  static constexpr int kMostRanks = 16'384;
};

Subcommand add_verify(CLI::App& tool);

// Exit::wrong where a case failed. Errors: algorithms that do not exist, nothing to prove.
Result<Exit> verify_catalogue(const VerifyArguments& arguments, Console& console);

}  // namespace rankine::tools
