#include "engine/tools/command_outline.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <map>

namespace rankine::tools {
namespace {

OptionOutline outline_of(const CLI::Option& option) {
  const bool positional = option.get_positional();
  OptionOutline outline{.help = option.get_description(),
                        .heading = option.get_group(),
                        .positional = positional,
                        .required = option.get_required()};
  for (const std::string& name : option.get_snames()) outline.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) outline.names.push_back("--" + name);
  if (positional) outline.names = {option.get_name(true)};
  if (option.get_items_expected_max() > 0) outline.kind = option.get_type_name();
  std::string others;
  for (const CLI::Option* other : option.get_excludes()) {
    others += (others.empty() ? "not with " : ", ") + other->get_name();
  }
  if (!others.empty()) outline.help += " (" + others + ")";
  return outline;
}

CommandOutline outline_of(const CLI::App& app) {
  CommandOutline outline{
      .name = app.get_name(), .help = app.get_description(), .footer = app.get_footer()};
  for (const CLI::Option* option : app.get_options()) {
    outline.options.push_back(outline_of(*option));
  }
  const auto named =
      std::stable_partition(outline.options.begin(), outline.options.end(),
                            [](const OptionOutline& option) { return option.positional; });
  // What stands under one heading stands together, whenever it was added.
  std::map<std::string, std::size_t> headings;
  for (auto option = named; option != outline.options.end(); ++option) {
    headings.try_emplace(option->heading, headings.size());
  }
  std::stable_sort(named, outline.options.end(),
                   [&](const OptionOutline& a, const OptionOutline& b) {
                     return headings[a.heading] < headings[b.heading];
                   });
  for (const CLI::App* one : app.get_subcommands([](const CLI::App*) { return true; })) {
    outline.commands.push_back(outline_of(*one));
  }
  return outline;
}

}  // namespace

CommandOutline outline_of(const Command& command) { return outline_of(command.app()); }

}  // namespace rankine::tools
