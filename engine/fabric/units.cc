#include "engine/fabric/units.h"

#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

namespace rankine {
namespace {

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

Status bad(std::string_view what, std::string_view text, std::string_view allowed) {
  return invalid_argument(std::string(what) + " is '" + std::string(text) + "'; allowed are " +
                          std::string(allowed));
}

Result<Fraction> power_of_ten(int exponent) {
  if (exponent > 18 || exponent < -18) return invalid_argument("exponent out of range");
  std::int64_t value = 1;
  for (int i = 0; i < std::abs(exponent); ++i) value *= 10;
  return exponent >= 0 ? Fraction(value) : Fraction(1, value);
}

constexpr std::string_view kDurations = "numbers with s, ms, us, ns or ps, such as 1.5us";
constexpr std::string_view kBandwidths =
    "positive numbers with B/s or b/s and a prefix, such as 100GB/s, 800Gb/s or 1.5TiB/s";

}  // namespace

Result<Fraction> parse_decimal(std::string_view text) {
  const auto [number, rest] = split(text);
  constexpr std::string_view kAllowed = "decimal numbers such as 1.5 or 2e-9";
  if (number.empty() || !rest.empty()) return bad("number", text, kAllowed);
  std::int64_t digits = 0;
  int exponent = 0, significant = 0;
  bool negative = false, after_point = false, any = false;
  for (std::size_t i = 0; i < number.size(); ++i) {
    const char c = number[i];
    if (c == '-') {
      negative = true;
    } else if (c == '.') {
      after_point = true;
    } else if (c == 'e' || c == 'E') {
      exponent += std::stoi(std::string(number.substr(i + 1)).substr(0, 6));
      break;
    } else if (c != '+') {
      any = true;
      if (digits != 0 || c != '0') ++significant;
      if (significant > 18) return bad("number", text, "decimal numbers of at most 18 digits");
      digits = digits * 10 + (c - '0');
      if (after_point) --exponent;
    }
  }
  if (!any) return bad("number", text, kAllowed);
  // 1.50e-6 and 15e-7 are the same.
  while (digits != 0 && digits % 10 == 0) {
    digits /= 10;
    ++exponent;
  }
  if (digits == 0) return Fraction(0);
  if (exponent > 0 && exponent + significant > 18) return bad("number", text, "numbers below 1e18");
  const auto scale = power_of_ten(exponent);
  if (!scale.ok()) return bad("number", text, "numbers from 1e-18 to 1e18");
  return Fraction(negative ? -digits : digits) * *scale;
}

Result<Fraction> parse_duration(std::string_view text) {
  const auto [number, unit] = split(text);
  constexpr std::array<std::string_view, 5> kUnits = {"s", "ms", "us", "ns", "ps"};
  const auto value = parse_decimal(number);
  if (!value.ok() || *value < 0) return bad("duration", text, kDurations);
  if (unit.empty()) return *value;
  std::int64_t scale = 1;
  for (const std::string_view name : kUnits) {
    if (unit == name) return *value / Fraction(scale);
    scale *= 1000;
  }
  return bad("duration", text, kDurations);
}

Result<Fraction> parse_bandwidth(std::string_view text) {
  auto [number, unit] = split(text);
  const auto value = parse_decimal(number);
  if (!value.ok() || !(Fraction(0) < *value)) return bad("bandwidth", text, kBandwidths);
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
  if (unit == "B/s") return Fraction(1) / (*value * Fraction(scale));
  if (unit == "b/s") return Fraction(8) / (*value * Fraction(scale));
  return bad("bandwidth", text, kBandwidths);
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

}  // namespace rankine
