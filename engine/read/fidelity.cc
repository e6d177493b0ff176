#include "engine/read/fidelity.h"

#include <algorithm>

namespace rankine {

const std::vector<std::string_view>& fidelity_names() {
  static const std::vector<std::string_view> kNames = {"eq1", "flow", "packet"};
  return kNames;
}

std::string_view name_of(Fidelity fidelity) {
  return fidelity_names()[static_cast<std::size_t>(fidelity)];
}

std::optional<Fidelity> parse_fidelity(std::string_view text) {
  const auto& names = fidelity_names();
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) return std::nullopt;
  return static_cast<Fidelity>(found - names.begin());
}

}  // namespace rankine
