#include "engine/tools/catalogue_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/api/typed_names.h"
#include "engine/tools/text.h"

namespace rankine::tools {

Result<Collective> read_collective(std::string_view argument, std::string_view text) {
  std::vector<std::string_view> names;
  const std::optional<Collective> meant = find_typed_collective(text);
  for (const Collective collective : all_collectives()) {
    if (algorithm_names(collective).empty()) continue;
    if (meant == collective) return collective;
    names.push_back(name_of(collective));
  }
  return unknown_name(argument, text, names);
}

Result<std::vector<const Algorithm*>> read_algorithms(std::string_view argument,
                                                      std::string_view text,
                                                      std::optional<Collective> collective) {
  std::vector<const Algorithm*> offered;
  std::vector<std::string_view> names;
  for (const Algorithm& line : catalogue()) {
    if (collective && line.collective != *collective) continue;
    offered.push_back(&line);
    if (std::find(names.begin(), names.end(), line.name) == names.end()) {
      names.push_back(line.name);
    }
  }
  std::vector<const Algorithm*> wanted;
  for (const std::string_view part : split_list(text)) {
    if (part == "all") return offered;
    std::vector<const Algorithm*> meant = find_typed_algorithms(part);
    std::erase_if(meant, [&](const Algorithm* line) {
      return collective && line->collective != *collective;
    });
    if (meant.empty()) {
      names.push_back("all");
      const std::string what = collective ? fmt::format("{} for {}", argument, name_of(*collective))
                                          : std::string(argument);
      return unknown_name(what, part, names);
    }
    wanted.insert(wanted.end(), meant.begin(), meant.end());
  }
  if (wanted.empty()) {
    return invalid_argument(
        fmt::format("{} is '{}'; allowed are {}, all", argument, text, join(names)));
  }
  // In the catalogue's order, each once.
  std::erase_if(offered, [&](const Algorithm* line) {
    return std::find(wanted.begin(), wanted.end(), line) == wanted.end();
  });
  return offered;
}

}  // namespace rankine::tools
