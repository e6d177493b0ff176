// rankine gaps: among how many ranks an algorithm is behind another one of the catalogue, and how
// far from what nobody can do without.
#pragma once

#include "engine/tools/arguments.h"

namespace rankine::tools {

Subcommand add_gaps(Command tool);

}  // namespace rankine::tools
