#include "engine/tools/menu.h"

#include <fmt/format.h>

#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

Result<const Menu*> read_menu(std::string_view argument, std::string_view text) {
  if (const Menu* menu = find_menu(text)) return menu;
  std::vector<std::string_view> names;
  for (const Menu& menu : menus()) names.push_back(menu.name);
  return unknown_name(argument, text, names);
}

}  // namespace

void add_menu(Command app, const Menu*& menu) {
  add_argument(app, "--menu", menu, read_menu, "NAME",
               fmt::format("only what that library ships: nccl, mpich, openmpi, ucc; or all ({})", menu->name));
}

Result<std::vector<const Algorithm*>> on_menu(const Menu& menu, Collective collective,
                                              std::vector<const Algorithm*> lines) {
  std::erase_if(lines, [&](const Algorithm* line) { return !menu.has(*line); });
  if (!lines.empty()) return lines;
  std::string has;
  for (const Algorithm& line : catalogue()) {
    if (line.collective != collective || !menu.has(line)) continue;
    has += fmt::format("{}{}", has.empty() ? "" : ", ", line.name);
  }
  return invalid_argument(fmt::format("--menu is '{}', which has {} of {}", menu.name,
                                      has.empty() ? "nothing" : has, name_of(collective)));
}

}  // namespace rankine::tools
