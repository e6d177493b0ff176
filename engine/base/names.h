// Enumerators by their names.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

namespace rankine {

// The enumerator of this name; `names` has those of all enumerators, in their order.
template <class Enum>
std::optional<Enum> enumerator_of(std::span<const std::string_view> names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

}  // namespace rankine
