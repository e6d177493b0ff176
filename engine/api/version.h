// The version that reports and tables name.
#pragma once

#include <string_view>

namespace rankine {

inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace rankine
