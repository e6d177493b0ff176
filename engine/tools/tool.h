// The tool as a function: arguments in, text and an exit code out. Tests call it as main() does.
#pragma once

#include <string>
#include <vector>

#include "engine/tools/console.h"

namespace rankine::tools {

// `arguments` without the program's name.
Exit run_tool(const std::vector<std::string>& arguments, Console& console);

}  // namespace rankine::tools
