// rankine network: presets and files, read, checked and written as files.
#pragma once

#include "engine/tools/arguments.h"

namespace rankine::tools {

Subcommand add_network(Command tool);

}  // namespace rankine::tools
