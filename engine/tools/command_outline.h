// What the tool and its subcommands take, as data: what --help prints is here to be printed by
// others.
#pragma once

#include <string>
#include <vector>

#include "engine/tools/arguments.h"

namespace rankine::tools {

struct OptionOutline {
  std::vector<std::string> names{};  // "-b", "--minbytes"; of a positional, its own
  std::string kind{};                // "SIZE"; empty: it takes no value
  std::string help;
  std::string heading;  // under which --help shows it
  bool positional = false;
  bool required = false;
};

struct CommandOutline {
  std::string name, help, footer;
  std::vector<OptionOutline> options{};  // positionals first, else as --help has them
  std::vector<CommandOutline> commands{};
};

CommandOutline outline_of(const Command& command);

}  // namespace rankine::tools
