// Lists of whole numbers as people write them: "4x4" of a torus, "11,6,3,2,1" of skips.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rankine {

inline std::string list_text(const std::vector<int>& list, char between) {
  std::string text;
  for (const int number : list)
    text += (text.empty() ? "" : std::string(1, between)) + std::to_string(number);
  return text;
}

// Numbers from 0 with `between` between them; nullopt where the text is something else, or empty.
inline std::optional<std::vector<int>> read_list(std::string_view text, char between) {
  std::vector<int> list;
  const char *at = text.data(), *const end = at + text.size();
  for (;; ++at) {
    const auto [behind, error] = std::from_chars(at, end, list.emplace_back());
    if (error != std::errc() || *at == '-') return std::nullopt;
    if (behind == end) return list;
    if (*behind != between) return std::nullopt;
    at = behind;
  }
}

}  // namespace rankine
