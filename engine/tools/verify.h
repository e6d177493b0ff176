// rankine verify: the catalogue, proved symbolically and compared with what its lines state.
#pragma once

#include <optional>

#include "engine/tools/algorithm_arguments.h"
#include "engine/tools/arguments.h"
#include "engine/tools/console.h"

namespace rankine::tools {

struct VerifyArguments {
  // Empty --algo: all. Numbers are lists of what to try, where algorithms take them; of what is not
  // given it is the sweep's own.
  AlgorithmArguments algorithm;
  std::optional<int> all_roots_up_to;  // else the sweep's own
  int threads = 0;                     // 0: all cores
  bool json = false, csv = false;

  static constexpr int kDefaultRanksTo = 130;
  static constexpr int kMostRanks = 1 << 20;  // as algorithms have it
};

Subcommand add_verify(Command tool);

// Exit::wrong where a case failed. Errors: algorithms that do not exist, nothing to prove.
Result<Exit> verify_catalogue(const VerifyArguments& arguments, Console& console);

}  // namespace rankine::tools
