// rankine show: an algorithm drawn round by round.
#pragma once

#include <optional>
#include <string>

#include "engine/tools/algorithm_arguments.h"
#include "engine/tools/arguments.h"
#include "engine/tools/console.h"

namespace rankine::tools {

struct ShowOptions {
  AlgorithmArguments algorithm{.begin = {.ranks = 4}, .most_ranks = 128};  // rows get wide
  std::optional<int> round;                                               // only this one
  std::optional<int> ports;  // of a network, to compare with; nothing: none is given
  bool transfers_only = false;
  std::string colour = "auto", lines = "auto";
  int width = 0;  // 0: of the terminal
  bool json = false;
  bool text = false;     // as rankine check reads it, in place of the drawing
  bool all = false;      // rounds and lines, however many
  std::string svg_file;  // a drawing as a picture, in place of the text
};

Subcommand add_show(Command tool);

Result<Exit> show(const ShowOptions& options, Console& console);

}  // namespace rankine::tools
