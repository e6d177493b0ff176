// The options of subcommands that name algorithms and their parameters.
#pragma once

#include <string>

#include "engine/tools/arguments.h"
#include "engine/tools/given_parameters.h"

namespace rankine::tools {

// What help says that subcommands say differently.
struct AlgorithmHelp {
  std::string collective = "collective";
  std::string algorithms{};  // where several may be given; else it is one
  std::string ranks = "ranks (8)";
  std::string root{};  // else as its row says
};
// The collective by position, --algo, and a flag for each parameter. Returns the collective's
// option, for who requires it.
Option add_algorithm_arguments(Command app, AlgorithmArguments& arguments,
                               const AlgorithmHelp& help = {});

}  // namespace rankine::tools
