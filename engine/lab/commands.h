// Declares the commands that rankine-lab adds to rankine, and the program itself.
#pragma once

#include <string>
#include <vector>

#include "engine/cli/arguments.h"
#include "engine/cli/console.h"
#include "engine/cli/text.h"
#include "engine/cli/tool.h"

namespace rankine::tools {

// The commands; their help says what they do.
Subcommand add_buckets(Command tool);
Subcommand add_claims(Command tool);
Subcommand add_cost(Command tool);
Subcommand add_faults(Command tool);
Subcommand add_gaps(Command tool);
Subcommand add_lesson(Command tool);
Subcommand add_map(Command tool);
Subcommand add_page(Command tool);
Subcommand add_plan(Command tool);
Subcommand add_reproduce(Command tool);
Subcommand add_skips_search(Command tool);
Subcommand add_soak(Command tool);
Subcommand add_step(Command tool);
Subcommand add_synthesise(Command tool);

// The page as it was when this program was built: one HTML file; empty if there was none.
std::vector<EmbeddedFile> built_page();

// The commands and the checks that rankine-lab adds to the product.
extern const CheckLaboratory kCheckLaboratory;
const Laboratory& laboratory();

// run_tool() with the laboratory: the main function of rankine-lab.
Exit run_lab(const std::vector<std::string>& arguments, Console& console);

}  // namespace rankine::tools
