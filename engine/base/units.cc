#include "engine/base/units.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>

namespace rankine {
namespace {

constexpr int kMostDigits = 36;

struct Split {
  std::string_view number, unit;
};

// The longest prefix that can be part of a decimal number, and the rest.
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
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  return {text.substr(0, i), unit};
}

Status bad(std::string_view argument, std::string_view text, std::string_view allowed) {
  return invalid_argument(std::string(argument) + " is '" + std::string(text) + "'; allowed are " +
                          std::string(allowed));
}

// Where numbers leave 128 bits the parsers' arithmetic throws.
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
constexpr std::string_view kDurations = "times such as 1.5us, with s, ms, us, ns or ps";
constexpr std::string_view kBandwidths =
    "positive bandwidths such as 100GB/s, 800Gb/s or 1.5TiB/s (B bytes, b bits)";

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
      constexpr int kMostExponent = 100'000;  // far out of range, and yet can be added to
      int read = power.front() == '-' ? -kMostExponent : kMostExponent;  // stays beyond int
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
  // 1.50e-6 and 15e-7 are the same.
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
  std::array<char, 64> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return parse_decimal(argument, {text.data(), static_cast<std::size_t>(end - text.data())});
}

Result<Rational> parse_seconds(std::string_view argument, std::string_view text) {
  const auto [number, unit] = split(text);
  constexpr std::array<std::string_view, 5> kUnits = {"s", "ms", "us", "ns", "ps"};
  const auto value = parse_decimal(argument, number);
  if (!value.ok() || *value < 0) return bad(argument, text, kDurations);
  std::int64_t scale = 1;
  for (const std::string_view name : kUnits) {
    if (unit == name || unit.empty()) {
      return within_128_bits(argument, text, [&] { return *value / Rational(scale); });
    }
    scale *= 1000;
  }
  return bad(argument, text, kDurations);
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
  if (unit != "B/s" && unit != "b/s") return bad(argument, text, kBandwidths);
  return within_128_bits(argument, text, [&, bits = unit == "b/s"] {
    return Rational(bits ? 8 : 1) / (*value * Rational(scale));
  });
}

std::string format_duration(double seconds) {
  constexpr std::array<const char*, 5> kUnits = {"s", "ms", "us", "ns", "ps"};
  std::size_t unit = 0;
  while (unit + 1 < kUnits.size() && seconds != 0 && std::fabs(seconds) < 1) {
    seconds *= 1000;
    ++unit;
  }
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.4g %s", seconds, kUnits[unit]);
  return text.data();
}

std::string format_bandwidth(Rational beta) {
  if (beta == 0) return "no limit";
  constexpr std::array<const char*, 5> kUnits = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
  double value = 1 / beta.to_double();
  std::size_t unit = 0;
  while (unit + 1 < kUnits.size() && value >= 1000) {
    value /= 1000;
    ++unit;
  }
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.4g %s", value, kUnits[unit]);
  return text.data();
}

}  // namespace rankine
