// The laboratory's subcommands as the program rankine knows them: names, and how to start
// rankine-lab, the program that has them.
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

// In the order of the help. A test compares them with those of rankine-lab.
std::span<const LaboratoryCommand> laboratory_commands();

// This process becomes rankine-lab with the same arguments (Console::arguments). The program lies
// beside this one, as Bazel lays it (../lab/), or in PATH. With `input`, its standard input is this
// text. Returns only if that fails: Exit::usage, and the reason is on console.err.
Exit start_laboratory(Console& console, std::optional<std::string_view> input = {});

}  // namespace rankine::tools
