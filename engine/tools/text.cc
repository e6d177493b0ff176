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
  const std::string_view digits = trimmed(text);
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < lowest ||
      value > highest) {
    const std::string allowed = lowest == highest ? fmt::format("only {}", lowest)
                                : highest == std::numeric_limits<int>::max()
                                    ? fmt::format("whole numbers from {}", lowest)
                                    : fmt::format("whole numbers from {} to {}", lowest, highest);
    return invalid_argument(fmt::format("{} is '{}'; allowed {} {}", argument, text,
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
          argument, text, part, lowest, highest, lowest, std::min(highest, 130)));
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

std::string_view closest(std::string_view name, std::span<const std::string_view> names) {
  // Edit distance with neighbours swapped as one edit (Damerau, restricted).
  const auto distance = [](std::string_view a, std::string_view b) {
    std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
    for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
      for (std::size_t j = 1; j <= b.size(); ++j) {
        d[i][j] = std::min(
            {d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
          d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
        }
      }
    }
    return d[a.size()][b.size()];
  };
  // all_reduce, all-reduce and AllReduce are one word.
  const auto plain = [](std::string_view text) {
    std::string out;
    for (const char c : text) {
      if (c != '_' && c != '-') out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return out;
  };
  constexpr std::size_t kLongest = 64;  // what is longer is no slip of the finger
  if (name.empty() || name.size() > kLongest) return {};
  const std::string wanted = plain(name);
  std::string_view best;
  std::size_t least = std::max<std::size_t>(1, wanted.size() / 3) + 1;
  for (const std::string_view candidate : names) {
    const std::size_t edits = distance(wanted, plain(candidate));
    if (edits < least) {
      least = edits;
      best = candidate;
    }
  }
  if (!best.empty()) return best;
  for (const std::string_view candidate : names) {  // the beginning of a longer word
    if (wanted.size() >= 3 && plain(candidate).starts_with(wanted)) return candidate;
  }
  return {};
}

Status unknown_name(std::string_view argument, std::string_view value,
                    std::span<const std::string_view> allowed) {
  std::string text = fmt::format("{} is '{}'; allowed are {}", argument, value, join(allowed));
  const std::string_view meant = closest(value, allowed);
  if (!meant.empty()) text += fmt::format("; did you mean '{}'?", meant);
  return invalid_argument(std::move(text));
}

}  // namespace rankine::tools
