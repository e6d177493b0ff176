// rankine compare: two measurements of perf against each other.
#pragma once

#include "engine/tools/arguments.h"

namespace rankine::tools {

Subcommand add_compare(Command tool);

}  // namespace rankine::tools
