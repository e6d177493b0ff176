// `rankine manual`: pages for man(1), of the tool and of its subcommands, made from what --help
// says.
#pragma once

#include "engine/tools/arguments.h"

namespace rankine::tools {

Subcommand add_manual(Command tool);

}  // namespace rankine::tools
