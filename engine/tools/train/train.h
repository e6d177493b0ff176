// `rankine train`: a small decoder trained by ranks, and by one thread beside it.
#pragma once

#include "engine/tools/arguments.h"

namespace rankine::tools {

Subcommand add_train(Command tool);

}  // namespace rankine::tools
