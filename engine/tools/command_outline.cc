#include "engine/tools/command_outline.h"

#include <CLI/CLI.hpp>

#include <algorithm>

namespace rankine::tools {
namespace {

// Under its names, or as an argument without one: some are both.
OptionOutline outline_of(const CLI::Option& option, bool positional) {
  OptionOutline outline{.help = option.get_description(),
                        .heading = option.get_group(),
                        .positional = positional,
                        .required = option.get_required()};
  for (const std::string& name : option.get_snames()) outline.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) outline.names.push_back("--" + name);
  if (positional) outline.names = {option.get_name(true)};
  if (option.get_items_expected_max() > 0) outline.kind = option.get_type_name();
  return outline;
}

CommandOutline outline_of(const CLI::App& app) {
  CommandOutline outline{
      .name = app.get_name(), .help = app.get_description(), .footer = app.get_footer()};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) outline.options.push_back(outline_of(*option, true));
    if (option->nonpositional()) outline.options.push_back(outline_of(*option, false));
  }
  std::stable_partition(outline.options.begin(), outline.options.end(),
                        [](const OptionOutline& option) { return option.positional; });
  for (const CLI::App* one : app.get_subcommands([](const CLI::App*) { return true; })) {
    outline.commands.push_back(outline_of(*one));
  }
  return outline;
}

}  // namespace

CommandOutline outline_of(const Command& command) { return outline_of(command.app()); }

}  // namespace rankine::tools
