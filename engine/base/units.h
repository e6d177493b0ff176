// Times and bandwidths as people write them, read exactly: "1.5us", "900GB/s", "800Gb/s".
//
// Everything is a fraction, never a rounded double, so that a simulated time can equal a closed
// form to the last bit. Every parser takes the name of its argument first; its error names the
// argument, its value and what is allowed.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/rational.h"
#include "engine/base/status.h"

namespace rankine {

// A decimal number, "1.5", "-2e-9". At most 36 significant digits.
Result<Rational> parse_decimal(std::string_view argument, std::string_view text);

// The shortest decimal that reads back as this double, taken exactly: 1e-6 is one millionth.
Result<Rational> shortest_decimal(std::string_view argument, double value);

// Seconds. Units: s ms us ns ps; a bare number is seconds. Not negative.
Result<Rational> parse_seconds(std::string_view argument, std::string_view text);

// Seconds per byte, from a bandwidth. Units: GB/s and its kin (k M G T, decimal; Ki Mi Gi Ti,
// binary; B bytes, b bits). Positive.
Result<Rational> parse_bandwidth(std::string_view argument, std::string_view text);

// "1.5 us": four significant digits, with the unit that suits.
std::string format_duration(double seconds);
// "100 GB/s", from seconds per byte; "no limit" for 0.
std::string format_bandwidth(Rational beta);

}  // namespace rankine
