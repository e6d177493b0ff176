// Numbers of things, in English.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace rankine {

// "1 rank", "8 ranks". `many`: where it is not the one with an s.
template <std::integral Whole>
std::string counted(Whole number, std::string_view one, std::string_view many = "") {
  std::string text = std::to_string(number) + " ";
  if (number == 1) return text.append(one);
  return many.empty() ? text.append(one).append("s") : text.append(many);
}

}  // namespace rankine
