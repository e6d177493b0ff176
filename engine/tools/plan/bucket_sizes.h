// rankine buckets: what the size of gradient buckets costs.
#pragma once

#include "engine/tools/arguments.h"

namespace rankine::tools {

Subcommand add_buckets(Command tool);

}  // namespace rankine::tools
