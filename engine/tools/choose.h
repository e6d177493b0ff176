// rankine choose: which algorithm a modelled network asks for, and why not another.
#pragma once

#include "engine/tools/arguments.h"

namespace rankine::tools {

Subcommand add_choose(Command tool);

}  // namespace rankine::tools
