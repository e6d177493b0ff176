#include "engine/tools/algorithm_arguments.h"

#include <fmt/format.h>

namespace rankine::tools {

Option add_algorithm_arguments(Command app, AlgorithmArguments& a, const AlgorithmHelp& help) {
  Option first = add_argument(app, help.collective, a.collective, read_collective, "NAME",
                              "which one; 'rankine list' shows all");
  if (help.algorithms.empty()) {
    add_text(app, "--algo", a.algorithms, "NAME", "a name of the catalogue");
  } else {
    add_text(app, "--algo", a.algorithms, "LIST", help.algorithms);
  }
  for (const Parameter& row : parameters()) {
    const std::string flag = fmt::format("--{}", row.name);
    const auto take = [&a, &row, flag](const std::string& text) {
      a.given.push_back({&row, text, flag, fmt::format("'{}'", text)});
    };
    std::string text(row.help);
    if (row.name == "ranks") text = help.ranks;
    if (row.name == "root" && !help.root.empty()) text = help.root;
    if (row.kind == Parameter::Kind::skips) text += "; " + row.allowed();
    const std::string flags =
        row.short_flag == 0 ? flag : fmt::format("-{},{}", row.short_flag, flag);
    app.add_option(flags, take, std::string(row.argument), text);
  }
  return first;
}

}  // namespace rankine::tools
