// rankine map: a picture of the cheapest algorithm over ranks and sizes on a modelled network.
#pragma once

#include "engine/tools/arguments.h"

namespace rankine::tools {

Subcommand add_map(Command tool);

}  // namespace rankine::tools
