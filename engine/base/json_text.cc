#include "engine/base/json_text.h"

#include <algorithm>

namespace rankine {
namespace {

// As long as the text is JSON, brackets within strings do not count; a parser gives up where it is
// none any more, and never nests deeper than this says.
std::size_t levels_of(std::string_view text) {
  std::size_t level = 0, most = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      most = std::max(most, ++level);
    } else if ((c == ']' || c == '}') && level > 0) {
      --level;
    }
  }
  return most;
}

}  // namespace

Status check_json_bounds(std::string_view what, std::string_view text) {
  if (text.size() > kMostJsonBytes) {
    return invalid_argument(std::string(what) + " has more than " + std::to_string(kMostJsonBytes) +
                            " bytes, which is the most that is read");
  }
  const std::size_t levels = levels_of(text);
  if (levels <= kMostJsonLevels) return {};
  return invalid_argument(std::string(what) + " nests " + std::to_string(levels) +
                          " levels deep; allowed are up to " + std::to_string(kMostJsonLevels));
}

template Result<nlohmann::json> read_json(std::string_view what, std::string_view text);
template Result<nlohmann::ordered_json> read_json(std::string_view what, std::string_view text);

}  // namespace rankine
