// The tool as a function: arguments in, text and an exit code out. Tests call it as main() does.
#pragma once

#include <string>
#include <vector>

#include "engine/tools/console.h"

namespace rankine::tools {

// `arguments` without the program's name. What is printed is flushed at the end; the first print or
// flush that fails ends the work, with Exit::environment and the reason on console.err. For that,
// console.out throws meanwhile (ios::badbit).
Exit run_tool(const std::vector<std::string>& arguments, Console& console);

// Of all subcommands, in the order of the help.
std::vector<std::string> subcommand_names();

}  // namespace rankine::tools
