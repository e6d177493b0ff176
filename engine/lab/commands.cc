// Lists the laboratory's subcommands. A new subcommand needs its own file and its name here.

#include "engine/lab/commands.h"

#include <array>

namespace rankine::tools {
namespace {

constexpr std::array<Subcommand (*)(Command), 14> kSubcommands = {
    add_map,  add_cost, add_gaps,    add_claims, add_skips_search, add_synthesise, add_reproduce,
    add_plan, add_step, add_buckets, add_faults, add_soak,         add_page,       add_lesson};

}  // namespace

const Laboratory& laboratory() {
  static const Laboratory all = {.subcommands = kSubcommands, .check = kCheckLaboratory};
  return all;
}

Exit run_lab(const std::vector<std::string>& arguments, Console& console) {
  return run_tool(arguments, console, &laboratory());
}

}  // namespace rankine::tools
