// Times and bandwidths as people write them, read exactly: "1.5us", "900GB/s", "800Gb/s".
//
// Everything is a fraction, never a rounded double, so that a simulated time can equal a closed form
// to the last bit.
#pragma once

#include <string>
#include <string_view>

#include "algorithms/formula.h"
#include "engine/exec/status.h"

namespace rankine {

// A decimal number, "1.5", "2e-9". At most 18 significant digits.
Result<Fraction> parse_decimal(std::string_view text);

// Seconds. Units: s ms us ns ps; a bare number is seconds. Not negative.
Result<Fraction> parse_duration(std::string_view text);

// Seconds per byte, from a bandwidth. Units: GB/s and its kin (k M G T, decimal; Ki Mi Gi Ti, binary;
// B bytes, b bits). Positive.
Result<Fraction> parse_bandwidth(std::string_view text);

// "1.5 us": three significant digits, with the unit that suits.
std::string format_duration(double seconds);

}  // namespace rankine
