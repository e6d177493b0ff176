// `rankine completion`: what a shell needs to complete the tool's subcommands, options and names.
#pragma once

#include "engine/tools/arguments.h"

namespace rankine::tools {

Subcommand add_completion(Command tool);

}  // namespace rankine::tools
