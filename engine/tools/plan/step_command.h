// rankine step: a planned step's collectives, played on threads with real buffers.
#pragma once

#include "engine/tools/arguments.h"

namespace rankine::tools {

Subcommand add_step(Command tool);

}  // namespace rankine::tools
