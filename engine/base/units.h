// This header reads sizes, times and bandwidths exactly ("64MiB", "1.5us", "900GB/s"), and writes
// them for people.
//
// Texts must not begin or end with blanks: a blank there indicates a mistake in a script. Blanks
// may stand between a number and its unit.
//
// Every parsed value is a fraction, never a rounded double, so that a simulated time can equal a
// closed form to the last bit. Every parser takes the name of its argument first; its error names
// the argument, its value and the allowed values.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "algorithms/rational.h"
#include "engine/base/status.h"  // for counted(), beside sizes and times

namespace rankine {

// A decimal number, "1.5", "-2e-9". At most 36 significant digits.
Result<Rational> parse_decimal(std::string_view argument, std::string_view text);

// The shortest decimal that reads back as this double, taken exactly: 1e-6 is one millionth.
Result<Rational> shortest_decimal(std::string_view argument, double value);

// "8", "4K", "1.5M", "64MiB", "2 GB", "1e6": suffixes K M G T, any case, with or without iB or B,
// all binary (32M = 33554432), as in nccl-tests. The result is a whole number of bytes.
Result<std::size_t> parse_size(std::string_view argument, std::string_view text);

// Limits: longer times and higher bandwidths are typing errors. A byte takes at most
// kLongestSeconds.
inline constexpr std::int64_t kLongestSeconds = 1'000'000'000;
inline constexpr std::int64_t kGreatestBandwidth = 1'000'000'000'000'000'000;

// Seconds. Units: h min s ms us ns ps, any case; a bare number is seconds. 0 to kLongestSeconds.
Result<Rational> parse_seconds(std::string_view argument, std::string_view text);

// parse_seconds() for a duration: above 0 and up to a day.
Result<Rational> parse_span(std::string_view argument, std::string_view text);

// parse_span() in whole milliseconds, for clocks.
Result<std::chrono::milliseconds> parse_duration(std::string_view argument, std::string_view text);

// Seconds per byte, from a bandwidth. Units: GB/s and similar (k M G T, decimal; Ki Mi Gi Ti,
// binary; B bytes, b or bit bits; ps for /s). Up to kGreatestBandwidth, and at least a byte in
// kLongestSeconds.
Result<Rational> parse_bandwidth(std::string_view argument, std::string_view text);

// The shortest exact form that parse_size() reads: "8", "4K", "64M", "1000".
std::string format_size(std::size_t bytes);
// For sentences: "64 MiB", "1.5 GiB", "12 B"; rounded.
std::string format_bytes(double bytes);
template <std::integral Whole>
std::string format_bytes(Whole bytes) {
  return format_bytes(static_cast<double>(bytes));
}

// For a model's time: "1.5 us", four significant digits, with a suitable unit.
std::string format_duration(double seconds);
// For a measured time: "120 ns", "12.3 us", "4.56 ms", "7.80 s".
std::string format_seconds(double seconds);
// "100 GB/s", from seconds per byte; "no limit" for 0.
std::string format_bandwidth(Rational beta);

}  // namespace rankine
