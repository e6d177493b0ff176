// rankine skips: which skips of a circulant reduce-scatter suit a network.
#pragma once

#include "engine/tools/arguments.h"

namespace rankine::tools {

Subcommand add_skips_search(CLI::App& tool);

}  // namespace rankine::tools
