// rankine page: writes the page, or answers as its engine does.
#pragma once

#include "engine/tools/arguments.h"

namespace rankine::tools {

Subcommand add_page(Command tool);

}  // namespace rankine::tools
