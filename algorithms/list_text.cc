#include "algorithms/list_text.h"

#include <charconv>

namespace rankine {

std::string list_text(const std::vector<int>& list, char between) {
  std::string text;
  for (const int number : list) {
    if (!text.empty()) text += between;
    text += std::to_string(number);
  }
  return text;
}

std::optional<std::vector<int>> read_list(std::string_view text, char between) {
  std::vector<int> list;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (;;) {
    const auto [behind, error] = std::from_chars(at, end, list.emplace_back());
    if (error != std::errc() || *at == '-') return std::nullopt;
    if (behind == end) return list;
    if (*behind != between) return std::nullopt;
    at = behind + 1;
  }
}

}  // namespace rankine
