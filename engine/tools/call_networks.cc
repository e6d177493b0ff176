#include "engine/tools/call_networks.h"

#include <fmt/format.h>

#include "engine/network/fabric.h"
#include "engine/tools/text.h"

namespace rankine::tools {

Result<std::vector<NamedNetwork>> read_call_networks(std::string_view argument,
                                                     std::string_view text) {
  std::vector<NamedNetwork> networks;
  if (text.starts_with('{')) {
    networks.push_back({std::string(text), nullptr});
  } else {
    for (const std::string_view part : split_list(text)) {
      if (networks.empty() || part.find('=') == std::string_view::npos) {
        networks.push_back({std::string(part), nullptr});
      } else {
        networks.back().name += fmt::format(",{}", part);
      }
    }
  }
  if (networks.empty()) {
    return invalid_argument(fmt::format("{} is ''; allowed are names of presets ({}) and files",
                                        argument, regime_names()));
  }
  for (NamedNetwork& one : networks) {
    auto found = find_call_network(one.name);
    if (!found.ok()) {
      return invalid_argument(
          fmt::format("{} is '{}': {}", argument, one.name, found.status().text()));
    }
    one.network = std::move(*found);
    if (text.starts_with('{')) one.name = one.network->fabric.name;
  }
  return networks;
}

}  // namespace rankine::tools
