// rankine topo: the machine, and where every rank and its memory goes.
#pragma once

#include <optional>
#include <string>

#include "engine/tools/arguments.h"
#include "engine/tools/console.h"
#include "numa/topology.h"

namespace rankine::tools {

struct TopoOptions {
  int ranks = 0;  // 0: usable cores, at least 2; of a synthetic machine its cores
  PlacementPolicy placement{};
  std::optional<Topology> synthetic{};  // draw this one instead of ours; nothing is pinned
  bool lock_memory = false;             // TeamOptions::lock_memory
  std::string svg{};                    // a file to draw into, or empty
  bool json = false;
};

Subcommand add_topo(Command tool);

// On our machine a team is made, so that what is refused is found by trying.
Result<Exit> topo(const TopoOptions& options, Console& console);

}  // namespace rankine::tools
