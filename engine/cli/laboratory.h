// The laboratory's subcommands as the program rankine knows them: their names and help, and the
// start of rankine-lab, the program that contains them.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "engine/base/status.h"
#include "engine/cli/console.h"

namespace rankine::tools {

struct LaboratoryCommand {
  const char *name, *help;
};

// In the order of the help. A test compares them with the subcommands of rankine-lab.
std::span<const LaboratoryCommand> laboratory_commands();

// Replaces this process by rankine-lab with the same arguments (Console::arguments). The program is
// looked up beside this one, in Bazel's layout (../lab/), then in PATH. With `input`, its standard
// input is this text. Returns only on failure: Exit::usage, and the reason is on console.err.
Exit start_laboratory(Console& console, std::optional<std::string_view> input = {});

}  // namespace rankine::tools
