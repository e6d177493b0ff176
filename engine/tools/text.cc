#include "engine/tools/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace rankine::tools {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

Result<int> parse_whole(std::string_view argument, std::string_view text, int lowest, int highest) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < lowest ||
      value > highest) {
    const std::string allowed = lowest == highest ? fmt::format("only {}", lowest)
                                : highest == std::numeric_limits<int>::max()
                                    ? fmt::format("whole numbers from {}", lowest)
                                    : fmt::format("whole numbers from {} to {}", lowest, highest);
    return invalid_argument(fmt::format("{} is '{}'; allowed {} {}", argument, legible(text),
                                        lowest == highest ? "is" : "are", allowed));
  }
  return value;
}

Result<std::vector<int>> parse_whole_list(std::string_view argument, std::string_view text,
                                          int lowest, int highest) {
  std::vector<int> values;
  for (const std::string_view part : split_list(text)) {
    const std::size_t dots = part.find("..");
    const std::string_view first = part.substr(0, dots);
    const std::string_view last = dots == std::string_view::npos ? first : part.substr(dots + 2);
    const auto from = parse_whole(argument, first, lowest, highest);
    const auto to = parse_whole(argument, last, lowest, highest);
    if (!from.ok() || !to.ok() || *from > *to) {
      return invalid_argument(fmt::format(
          "{} is '{}', with '{}' in it; allowed are whole numbers from {} to {}, such as 8, 2,3,8 "
          "or {}..{}",
          argument, legible(text), legible(part), lowest, highest, lowest, std::min(highest, 130)));
    }
    for (int value = *from; value <= *to; ++value) values.push_back(value);
  }
  if (values.empty()) {
    return invalid_argument(fmt::format("{} is empty; allowed are whole numbers from {} to {}",
                                        argument, lowest, highest));
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> parts;
  if (trimmed(text).empty()) return parts;
  for (;;) {
    const std::size_t comma = text.find(',');
    parts.push_back(trimmed(text.substr(0, comma)));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

std::string join(std::span<const std::string_view> parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts.begin(), parts.end(), separator));
}

std::string legible(std::string_view text) {
  constexpr std::size_t kMost = 80;
  std::string out(text.substr(0, kMost));
  for (char& c : out) {
    if ((c >= 0 && c < ' ') || c == 0x7f) c = '?';
  }
  return text.size() > kMost ? out + " ..." : out;
}

Status unknown_name(std::string_view argument, std::string_view value,
                    std::span<const std::string_view> allowed) {
  return invalid_argument(fmt::format("{} is '{}'; allowed are {}{}", argument, legible(value),
                                      join(allowed), did_you_mean(value, allowed)));
}

}  // namespace rankine::tools
