#include "engine/tools/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace rankine::tools {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = lower(c);
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A plain decimal number at the front of `text`, which it takes away: digits, perhaps a point and
// more digits. As an integer and the number of places behind the point.
struct Decimal {
  unsigned __int128 digits = 0;
  int places = 0;
  bool found = false;
  bool too_long = false;  // more digits than `digits` holds
  bool too_fine = false;  // more places than anybody needs
};
Decimal take_decimal(std::string_view& text) {
  Decimal number;
  constexpr int kMostDigits = 30;  // 10^30 times 2^40 is still below 2^140: checked by the caller
  int digits = 0;
  bool point = false;
  while (!text.empty() && (is_digit(text.front()) || (text.front() == '.' && !point))) {
    if (text.front() == '.') {
      point = true;
    } else {
      number.found = true;
      if (number.digits != 0 || text.front() != '0') ++digits;
      if (digits > kMostDigits) number.too_long = true;
      if (number.places == kMostDigits) number.too_fine = true;
      if (!number.too_long && !number.too_fine) {
        number.digits = number.digits * 10 + static_cast<unsigned>(text.front() - '0');
        number.places += point ? 1 : 0;
      }
    }
    text.remove_prefix(1);
  }
  return number;
}

constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};

// log2 of what a size's suffix stands for, or -1.
int shift_of(std::string_view suffix) {
  const std::string s = lowered(trimmed(suffix));
  if (s.empty() || s == "b") return 0;
  constexpr std::string_view kLetters = "kmgt";
  const std::size_t letter = kLetters.find(s.front());
  if (letter == std::string_view::npos) return -1;
  const std::string_view rest = std::string_view(s).substr(1);
  if (!rest.empty() && rest != "b" && rest != "i" && rest != "ib") return -1;
  return 10 * static_cast<int>(letter + 1);
}

}  // namespace

Result<std::size_t> parse_size(std::string_view argument, std::string_view text) {
  std::string_view rest = trimmed(text);
  const Decimal number = take_decimal(rest);
  const int shift = shift_of(rest);
  if (!number.found || shift < 0) {
    return invalid_argument(
        fmt::format("{} is '{}'; allowed are bytes such as 8, 4K, 1.5M or 64MiB (K M G T, binary)",
                    argument, text));
  }
  const auto too_large = [&] {
    return invalid_argument(
        fmt::format("{} is '{}', which does not fit into 63 bits; allowed are "
                    "sizes below 8388608T (8 EiB)",
                    argument, text));
  };
  constexpr auto kMost = static_cast<unsigned __int128>(std::numeric_limits<std::ptrdiff_t>::max());
  unsigned __int128 scale = 1;
  for (int i = 0; i < number.places; ++i) scale *= 10;
  // digits / scale * 2^shift without a step that overflows: whole part first, then bit by bit what
  // the part behind the point is worth. Both are below 10^30.
  const unsigned __int128 whole = number.digits / scale, part = number.digits % scale;
  if (number.too_long || whole > (kMost >> shift)) return too_large();
  unsigned __int128 bytes = whole << shift;
  unsigned __int128 left = part;
  for (int i = 0; i < shift; ++i) {
    left *= 2;
    if (left >= scale) {
      bytes += static_cast<unsigned __int128>(1) << (shift - 1 - i);
      left -= scale;
    }
  }
  if (left != 0 || number.too_fine) {
    return invalid_argument(
        fmt::format("{} is '{}', which is not a whole number of bytes", argument, text));
  }
  if (bytes > kMost) return too_large();
  return static_cast<std::size_t>(bytes);
}

std::string format_size(std::size_t bytes) {
  constexpr std::string_view kLetters = "KMGT";
  int unit = -1;
  while (bytes != 0 && bytes % 1024 == 0 && unit + 1 < static_cast<int>(kLetters.size())) {
    bytes /= 1024;
    ++unit;
  }
  std::string text = std::to_string(bytes);
  if (unit >= 0) text += kLetters[static_cast<std::size_t>(unit)];
  return text;
}

std::string format_bytes(double bytes) {
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  const bool whole = unit == 0 || bytes >= 100 || bytes == std::floor(bytes);
  return fmt::format("{:.{}f} {}", bytes, whole ? 0 : 1, kUnits[unit]);
}

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

Result<std::chrono::milliseconds> parse_duration(std::string_view argument, std::string_view text) {
  using Wide = unsigned __int128;
  constexpr Wide kMostMs = 86'400'000;
  std::string_view rest = trimmed(text);
  const Decimal number = take_decimal(rest);
  const std::string unit = lowered(trimmed(rest));
  const Wide us = unit.empty() || unit == "s" ? 1'000'000
                  : unit == "ms"              ? 1'000
                  : unit == "us"              ? 1
                  : unit == "min"             ? 60'000'000
                                              : 0;
  // Exactly, rounded up: in doubles 0.35 s are more than 350 ms. 10^30 times a minute fits.
  Wide per_ms = 1'000;
  for (int i = 0; i < number.places; ++i) per_ms *= 10;
  const Wide ms = (number.digits * us + per_ms - 1) / per_ms;
  if (!number.found || number.too_long || number.too_fine || ms == 0 || ms > kMostMs) {
    return invalid_argument(
        fmt::format("{} is '{}'; allowed are times above 0 and up to a day, such as 30 (seconds), "
                    "0.5, 500ms, 2s or 3min",
                    argument, text));
  }
  return std::chrono::milliseconds(static_cast<std::int64_t>(ms));
}

std::string format_seconds(double seconds) {
  const auto scaled = [](double value, std::string_view unit) {
    return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : value < 100 ? 1 : 0, unit);
  };
  if (seconds < 1e-6) return scaled(seconds * 1e9, "ns");
  if (seconds < 1e-3) return scaled(seconds * 1e6, "us");
  if (seconds < 1) return scaled(seconds * 1e3, "ms");
  return scaled(seconds, "s");
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
    std::string out = lowered(text);
    std::erase_if(out, [](char c) { return c == '_' || c == '-'; });
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
