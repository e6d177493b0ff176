// rankine skips: which skips of a circulant reduce-scatter suit a network.
#pragma once

#include "engine/tools/arguments.h"

namespace rankine::tools {

Subcommand add_skips_search(Command tool);

}  // namespace rankine::tools
