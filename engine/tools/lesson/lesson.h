// rankine lesson: a course of six lessons, written with the engine's answers as they are now.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/tools/arguments.h"

namespace rankine::tools {

// The tool itself: run_tool(), which knows this subcommand and cannot be seen from it.
using RunTool = std::function<Exit(const std::vector<std::string>& arguments, Console& console)>;

Subcommand add_lesson(Command tool, RunTool run);

}  // namespace rankine::tools
