// Text inside of an SVG picture.
#pragma once

#include <string>
#include <string_view>

namespace rankine::tools {

// With the four characters that mean something in XML written as entities.
inline std::string xml_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace rankine::tools
