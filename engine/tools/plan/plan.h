// rankine plan: what a training step of a model costs, mapped to ranks.
#pragma once

#include "engine/tools/arguments.h"

namespace rankine::tools {

Subcommand add_plan(Command tool);

}  // namespace rankine::tools
