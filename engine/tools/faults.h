// rankine faults: the table of faults, played on threads or among processes, and counted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "engine/faults/fault.h"
#include "engine/tools/arguments.h"
#include "engine/tools/console.h"

namespace rankine::tools {

struct FaultsArguments {
  std::vector<const faults::Fault*> faults;  // empty: all
  std::optional<Collective> collective;
  std::string algorithms = "all";
  std::vector<int> ranks;  // empty: faults::kRanks, or kProcessRanks
  int repeat = 1;
  std::optional<std::uint64_t> seed;
  int jobs = 0;            // 0: one per core
  bool processes = false;  // ranks are processes
  int cycles = 0;          // 0: as the table has them, with all others
  bool quick = false;
  bool list = false;
  bool json = false, csv = false;

  static constexpr int kQuickSample = 40;  // one case in so many
  static constexpr int kMostRanks = 256;
  static constexpr int kRanksOfCycles = 4;
};

Subcommand add_faults(Command tool);

// Exit::wrong where a promise was broken. Errors: nothing to play, no processes.
Result<Exit> play_faults(const FaultsArguments& arguments, Console& console);

}  // namespace rankine::tools
