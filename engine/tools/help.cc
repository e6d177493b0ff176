#include "engine/tools/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "engine/tools/terminal.h"

namespace rankine::tools {
namespace {

// A name, and what there is to say of it beside it or, where the name is long, below.
std::string entry(const std::string& name, const std::string& help, int width) {
  const auto column = static_cast<std::size_t>(std::min(30, width / 3));
  std::string text = "  " + name;
  const std::string said = wrapped(help, width, column);
  if (said.empty() || text.size() + 1 >= column) return text + "\n" + said;
  return text + said.substr(text.size());
}

std::string name_of(const OptionOutline& option) {
  return fmt::format("{}{}{}", fmt::join(option.names, ","), option.kind.empty() ? "" : " ",
                     option.kind);
}

}  // namespace

std::string help_text(const CommandOutline& command, const std::string& called, int width) {
  std::string usage = fmt::format("Usage: {} [OPTIONS]", called), entries, heading;
  for (const OptionOutline& option : command.options) {
    if (option.positional) {
      const std::string& name = option.names.front();
      usage += option.required ? " " + name : " [" + name + "]";
    }
    const std::string under = option.positional ? "Arguments" : option.heading;
    if (under != heading) entries += fmt::format("\n{}:\n", heading = under);
    entries += entry(name_of(option), option.help + (option.required ? " (required)" : ""), width);
  }
  if (!command.commands.empty()) {
    usage += " [SUBCOMMAND]";
    entries += "\nSubcommands:\n";
  }
  for (const CommandOutline& one : command.commands) entries += entry(one.name, one.help, width);
  return filled(command.help, width) + usage + "\n" + entries + "\n" +
         filled(command.footer, width);
}

}  // namespace rankine::tools
