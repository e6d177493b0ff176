// What errors say behind "the nearest" of a number that must be one of several.
#pragma once

#include <cstdint>
#include <string>

namespace rankine::tools {

// "are 2 or 4"; "is 4" where nothing is allowed on the other side, which is 0 then. shown(n): how a
// number is written.
template <class Shown>
std::string nearest_of(std::int64_t below, std::int64_t above, const Shown& shown) {
  if (below == 0 || above == 0) return "is " + shown(below + above);
  return "are " + shown(below) + " or " + shown(above);
}
inline std::string nearest_of(std::int64_t below, std::int64_t above) {
  return nearest_of(below, above, [](std::int64_t n) { return std::to_string(n); });
}

}  // namespace rankine::tools
