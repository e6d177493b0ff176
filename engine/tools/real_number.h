// Numbers that need not be whole, as people write them on a command line.
#pragma once

#include <optional>
#include <string_view>

namespace rankine::tools {

// The whole text as a number that is finite, or nullopt.
std::optional<double> parse_real(std::string_view text);

}  // namespace rankine::tools
