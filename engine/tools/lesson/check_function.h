// rankine check of a file with a function schedule(n): it has to be right for every n.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/network/simulate.h"
#include "engine/tools/console.h"
#include "engine/tools/lesson/schedule_function.h"

namespace rankine::tools {

struct FunctionQuestion {
  std::string file;
  std::vector<int> ranks;
  std::uint64_t bytes = 0;
  Fabric network;  // as network_of() has it
  SimulateOptions options;
  FunctionLimits limits;
  bool json = false;  // a line for each number of ranks
};

// Says what each schedule costs and, of the first that is wrong, why. Errors: those of
// schedule_function.h, of wired_for() and of judge().
Result<Exit> check_function(const FunctionQuestion& question, Console& console);

}  // namespace rankine::tools
