// rankine simulate: how long algorithms take on a network of the model, exactly; one question from
// the command line, or many as lines of JSON.
#pragma once

#include "engine/tools/arguments.h"

namespace rankine::tools {

Subcommand add_simulate(Command tool);

}  // namespace rankine::tools
