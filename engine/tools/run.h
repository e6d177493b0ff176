// rankine run: a collective with real data on pinned threads under a clock of the model, predicted
// beside measured.
#pragma once

#include "engine/tools/arguments.h"

namespace rankine::tools {

Subcommand add_run(Command tool);

}  // namespace rankine::tools
