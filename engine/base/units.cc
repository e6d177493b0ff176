#include "engine/base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>

namespace rankine {
namespace {

constexpr int kMostDigits = 36;

struct Split {
  std::string_view number, unit;
};

std::string lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// The longest prefix that can be part of a decimal number, and the unit after it, without blanks
// between. A unit does not end with a blank, and a text of blanks has no number.
Split split(std::string_view text) {
  std::size_t i = 0;
  const auto digit = [&](std::size_t at) {
    return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0;
  };
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
  while (digit(i)) ++i;
  if (i < text.size() && text[i] == '.') ++i;
  while (digit(i)) ++i;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    std::size_t exponent = i + 1;
    if (exponent < text.size() && (text[exponent] == '-' || text[exponent] == '+')) ++exponent;
    if (digit(exponent)) {
      i = exponent;
      while (digit(i)) ++i;
    }
  }
  std::string_view unit = text.substr(i);
  while (!unit.empty() && unit.front() == ' ' && unit.back() != ' ') unit.remove_prefix(1);
  return {text.substr(0, i), unit};
}

Status bad(std::string_view argument, std::string_view text, std::string_view allowed) {
  return invalid_argument(std::string(argument) + " is '" + std::string(text) + "'; allowed are " +
                          std::string(allowed));
}

// The parsers' arithmetic throws if numbers leave 128 bits; this returns an error instead.
template <class Compute>
Result<Rational> within_128_bits(std::string_view argument, std::string_view text,
                                 const Compute& compute) {
  try {
    return compute();
  } catch (const std::overflow_error&) {
    return bad(argument, text, "numbers with fewer digits, from 1e-36 to 1e36");
  }
}

Rational power_of_ten(int exponent) {
  if (std::abs(exponent) > kMostDigits) throw std::overflow_error("a power of ten");
  Int128 value = 1;
  for (int i = 0; i < std::abs(exponent); ++i) value *= 10;
  return exponent >= 0 ? Rational(value, 1) : Rational(1, value);
}

constexpr std::string_view kNumbers = "decimal numbers such as 1.5 or 2e-9";
constexpr std::string_view kSizes = "bytes such as 8, 4K, 1.5M or 64MiB (K M G T, binary)";
constexpr std::string_view kSeconds =
    "times such as 1.5us, with h, min, s, ms, us, ns or ps, up to 1e9 s";
constexpr std::string_view kSpans =
    "times above 0 and up to a day, such as 2 (seconds), 500us or 3min";
constexpr std::string_view kDurations =
    "whole milliseconds above 0 and up to a day, such as 30 (seconds), 0.5, 500ms, 2s or 3min";
constexpr std::string_view kBandwidths =
    "positive bandwidths such as 100GB/s, 800Gbit/s or 1.5TiB/s (B bytes, b bits), up to 1e18 B/s";

// log2 of a size suffix's factor, or -1 for an unknown suffix.
int shift_of(std::string_view suffix) {
  const std::string s = lowered(suffix);
  if (s.empty() || s == "b") return 0;
  const std::size_t letter = std::string_view("kmgt").find(s.front());
  if (letter == std::string_view::npos) return -1;
  const std::string_view rest = std::string_view(s).substr(1);
  if (!rest.empty() && rest != "b" && rest != "i" && rest != "ib") return -1;
  return 10 * static_cast<int>(letter + 1);
}

std::string four_digits(double value, const char* unit) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.4g %s", value, unit);
  return text.data();
}

std::string with_places(double value, int places, const char* unit) {
  std::array<char, 400> text{};  // the greatest double has 309 digits
  std::snprintf(text.data(), text.size(), "%.*f %s", places, value, unit);
  return text.data();
}

}  // namespace

Result<Rational> parse_decimal(std::string_view argument, std::string_view text) {
  const auto [number, rest] = split(text);
  if (number.empty() || !rest.empty()) return bad(argument, text, kNumbers);
  Int128 digits = 0;
  int exponent = 0, significant = 0;
  bool negative = false, after_point = false, any = false;
  for (std::size_t i = 0; i < number.size(); ++i) {
    const char c = number[i];
    if (c == '-') {
      negative = true;
    } else if (c == '.') {
      after_point = true;
    } else if (c == 'e' || c == 'E') {
      std::string_view power = number.substr(i + 1);
      if (power.front() == '+') power.remove_prefix(1);
      constexpr int kMostExponent = 100'000;  // far out of range, and sums of it do not overflow
      // kept if the exponent is beyond int
      int read = power.front() == '-' ? -kMostExponent : kMostExponent;
      std::from_chars(power.data(), power.data() + power.size(), read);
      exponent += std::clamp(read, -kMostExponent, kMostExponent);
      break;
    } else if (c != '+') {
      any = true;
      if (digits != 0 || c != '0') ++significant;
      if (significant > kMostDigits) {
        return bad(argument, text, "decimal numbers of at most 36 digits");
      }
      digits = digits * 10 + (c - '0');
      if (after_point) --exponent;
    }
  }
  if (!any) return bad(argument, text, kNumbers);
  // 1.50e-6 and 15e-7 are equal: drop trailing zeros.
  while (digits != 0 && digits % 10 == 0) {
    digits /= 10;
    ++exponent;
  }
  if (digits == 0) return Rational(0);
  return within_128_bits(argument, text, [&] {
    return Rational(negative ? -digits : digits, 1) * power_of_ten(exponent);
  });
}

Result<Rational> shortest_decimal(std::string_view argument, double value) {
  // fmt prints as std::to_chars does; some standard libraries lack that for numbers that are not
  // whole.
  return parse_decimal(argument, fmt::format("{}", value));
}

Result<std::size_t> parse_size(std::string_view argument, std::string_view text) {
  const auto [number, unit] = split(text);
  const int shift = shift_of(unit);
  const std::string_view before_exponent = number.substr(0, number.find_first_of("eE"));
  const bool digits = before_exponent.find_first_of("0123456789") != std::string_view::npos;
  const bool sign = number.starts_with('-') || number.starts_with('+');
  if (!digits || sign || shift < 0) return bad(argument, text, kSizes);
  const auto refused = [&](std::string_view why) {
    return invalid_argument(std::string(argument) + " is '" + std::string(text) + "', which " +
                            std::string(why));
  };
  constexpr auto kMost = std::numeric_limits<std::ptrdiff_t>::max();
  const auto value = parse_decimal(argument, number);
  const auto bytes = within_128_bits(argument, text, [&]() -> Result<Rational> {
    if (!value.ok()) return value;
    return *value * Rational(std::int64_t{1} << shift);
  });
  // A value outside 128 bits has too many digits before or behind the point.
  const bool too_large = bytes.ok() ? Rational(kMost) < bytes->floor()
                                    : std::ldexp(std::strtod(std::string(number).c_str(), nullptr),
                                                 shift) > static_cast<double>(kMost);
  if (too_large) {
    return refused("does not fit into 63 bits; allowed are sizes below 8388608T (8 EiB)");
  }
  if (!bytes.ok() || !bytes->whole()) return refused("is not a whole number of bytes");
  return static_cast<std::size_t>(bytes->top());
}

Result<Rational> parse_seconds(std::string_view argument, std::string_view text) {
  const auto [number, unit] = split(text);
  const auto value = parse_decimal(argument, number);
  if (!value.ok() || *value < 0) return bad(argument, text, kSeconds);
  const std::string name = lowered(unit);
  // Round down: a comparison of a fraction with many digits may leave 128 bits.
  const auto bounded = [&](Rational seconds) -> Result<Rational> {
    if (Rational(kLongestSeconds) < seconds.floor()) return bad(argument, text, kSeconds);
    return seconds;
  };
  if (name == "min" || name == "h") {
    return within_128_bits(argument, text,
                           [&] { return bounded(*value * Rational(name == "h" ? 3600 : 60)); });
  }
  constexpr std::array<std::string_view, 5> kUnits = {"s", "ms", "us", "ns", "ps"};
  std::int64_t scale = 1;
  for (const std::string_view known : kUnits) {
    if (name == known || name.empty()) {
      return within_128_bits(argument, text, [&] { return bounded(*value / Rational(scale)); });
    }
    scale *= 1000;
  }
  return bad(argument, text, kSeconds);
}

Result<Rational> parse_span(std::string_view argument, std::string_view text) {
  constexpr Int128 kDay = 86'400;
  const auto seconds = parse_seconds(argument, text);
  if (!seconds.ok() || *seconds == 0) return bad(argument, text, kSpans);
  // Round up: a comparison of a fraction with many digits may leave 128 bits.
  const Int128 at_most = -(*seconds * Rational(-1)).floor().top();
  return at_most > kDay ? Result<Rational>(bad(argument, text, kSpans)) : seconds;
}

Result<std::chrono::milliseconds> parse_duration(std::string_view argument, std::string_view text) {
  const auto span = parse_span(argument, text);
  if (!span.ok()) return bad(argument, text, kDurations);
  const Rational ms = *span * Rational(1000);  // a day with 36 digits leaves room for it
  if (!ms.whole()) return bad(argument, text, kDurations);
  return std::chrono::milliseconds(static_cast<std::int64_t>(ms.top()));
}

Result<Rational> parse_bandwidth(std::string_view argument, std::string_view text) {
  auto [number, unit] = split(text);
  const auto value = parse_decimal(argument, number);
  if (!value.ok() || !(Rational(0) < *value)) return bad(argument, text, kBandwidths);
  std::int64_t scale = 1;
  constexpr std::string_view kPrefixes = "kMGT";
  if (!unit.empty()) {
    const char prefix = unit.front() == 'K' ? 'k' : unit.front();
    const auto power = kPrefixes.find(prefix);
    if (power != std::string_view::npos) {
      unit.remove_prefix(1);
      const bool binary = !unit.empty() && unit.front() == 'i';
      if (binary) unit.remove_prefix(1);
      for (std::size_t i = 0; i <= power; ++i) scale *= binary ? 1024 : 1000;
    }
  }
  const bool bits = unit == "b/s" || unit == "bps" || unit == "bit/s" || unit == "bits/s";
  if (!bits && unit != "B/s" && unit != "Bps") return bad(argument, text, kBandwidths);
  return within_128_bits(argument, text, [&]() -> Result<Rational> {
    const Rational beta = Rational(bits ? 8 : 1) / (*value * Rational(scale));
    const bool absurd = Rational(kLongestSeconds) < beta.floor() ||
                        Rational(kGreatestBandwidth) < (Rational(1) / beta).floor();
    if (absurd) return bad(argument, text, kBandwidths);
    return beta;
  });
}

std::string format_size(std::size_t bytes) {
  constexpr std::string_view kLetters = "KMGT";
  std::size_t unit = 0;
  for (; bytes != 0 && bytes % 1024 == 0 && unit < kLetters.size(); ++unit) bytes /= 1024;
  return std::to_string(bytes) + std::string(unit == 0 ? "" : kLetters.substr(unit - 1, 1));
}

std::string format_bytes(double bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; unit + 1 < kUnits.size() && bytes >= 1024; ++unit) bytes /= 1024;
  const bool whole = unit == 0 || bytes >= 100 || bytes == std::floor(bytes);
  return with_places(bytes, whole ? 0 : 1, kUnits[unit]);
}

std::string format_duration(double seconds) {
  constexpr std::array<const char*, 5> kUnits = {"s", "ms", "us", "ns", "ps"};
  std::size_t unit = 0;
  for (; unit + 1 < kUnits.size() && seconds != 0 && std::fabs(seconds) < 1; ++unit) {
    seconds *= 1000;
  }
  return four_digits(seconds, kUnits[unit]);
}

std::string format_seconds(double seconds) {
  const auto scaled = [](double value, const char* unit) {
    return with_places(value, value < 10 ? 2 : value < 100 ? 1 : 0, unit);
  };
  if (seconds < 1e-6) return scaled(seconds * 1e9, "ns");
  if (seconds < 1e-3) return scaled(seconds * 1e6, "us");
  if (seconds < 1) return scaled(seconds * 1e3, "ms");
  return scaled(seconds, "s");
}

std::string format_bandwidth(Rational beta) {
  if (beta == 0) return "no limit";
  constexpr std::array<const char*, 5> kUnits = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
  double value = 1 / beta.to_double();
  std::size_t unit = 0;
  for (; unit + 1 < kUnits.size() && value >= 1000; ++unit) value /= 1000;
  return four_digits(value, kUnits[unit]);
}

}  // namespace rankine
