// What --help prints.
#pragma once

#include <string>

#include "engine/tools/command_outline.h"

namespace rankine::tools {

// The command, its usage, its options under their headings, its subcommands, and its footer, as
// filled() (terminal.h) has it. `called`: as it is typed, "rankine perf".
std::string help_text(const CommandOutline& command, const std::string& called, int width);

}  // namespace rankine::tools
