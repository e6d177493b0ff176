// rankine list: the catalogue as a table or as JSON.
#pragma once

#include <optional>

#include "algorithms/schedule/collective.h"
#include "engine/tools/arguments.h"
#include "engine/tools/console.h"

namespace rankine::tools {

struct ListOptions {
  std::optional<Collective> collective;  // only this one
  int ranks = 0;  // N at which the formulas are computed; 0: shown as they are
  int segments = 1;
  bool json = false;
  bool brief = false;  // a line per algorithm
};

Subcommand add_list(Command tool);

Result<Exit> list(const ListOptions& options, Console& console);

}  // namespace rankine::tools
