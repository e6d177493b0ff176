// rankine reproduce: a paper's tables, figures and statements, recomputed from the schedules.
#pragma once

#include <string>

#include "engine/tools/arguments.h"
#include "engine/tools/console.h"

namespace rankine::tools {

struct ReproduceArguments {
  std::string paper;  // trivance or traff; empty: both
  std::string svg;    // a folder for the figures; empty: none
  bool json = false;
};

Subcommand add_reproduce(Command tool);

// What comes out differently than in the paper is no error. Errors: a folder that cannot be
// written, or that no figure is there for.
Result<Exit> reproduce_papers(const ReproduceArguments& arguments, Console& console);

}  // namespace rankine::tools
