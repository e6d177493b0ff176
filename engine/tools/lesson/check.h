// rankine check: judges a schedule that a learner wrote, a function that makes schedules, the order
// of a pipeline's work, or a formula for the question of a task.
#pragma once

#include "engine/tools/arguments.h"

namespace rankine::tools {

Subcommand add_check(Command tool);

}  // namespace rankine::tools
