#include "engine/base/status.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

namespace rankine {

std::string_view name_of(Code code) {
  constexpr std::string_view kNames[] = {
      "ok",           "invalid argument", "mismatch",      "timeout", "rank lost",
      "remote error", "aborted",          "out of memory", "system",  "forked"};
  static_assert(std::size(kNames) == kCodes);
  const auto number = static_cast<std::size_t>(code);
  return number < kCodes ? kNames[number] : "unknown";
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
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
}

std::string_view closest(std::string_view name, std::span<const std::string_view> names) {
  // Treat all_reduce, all-reduce and AllReduce as equal.
  const auto plain = [](std::string_view text) {
    std::string out;
    for (const char c : text) {
      if (c != '_' && c != '-') out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return out;
  };
  constexpr std::size_t kLongest = 64;  // a longer text is no slip of the finger
  if (name.empty() || name.size() > kLongest) return {};
  const std::string wanted = plain(name);
  std::string_view best;
  std::size_t least = std::max<std::size_t>(1, wanted.size() / 3) + 1;
  for (const std::string_view candidate : names) {
    const std::size_t edits = edit_distance(wanted, plain(candidate));
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

std::string did_you_mean(std::string_view name, std::span<const std::string_view> names) {
  const std::string_view meant = closest(name, names);
  return meant.empty() ? "" : "; did you mean '" + std::string(meant) + "'?";
}

}  // namespace rankine
