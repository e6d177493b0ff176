#include "engine/tools/real_number.h"

#include <charconv>
#include <cmath>
#include <system_error>

namespace rankine::tools {

std::optional<double> parse_real(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace rankine::tools
