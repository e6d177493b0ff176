// What all SVG pictures have in common.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace rankine::tools {

// With the four characters that mean something in XML written as entities.
inline std::string xml_text(std::string_view text) {
  constexpr std::pair<char, std::string_view> kEntities[] = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}};
  std::string out;
  for (const char c : text) {
    std::string_view written(&c, 1);
    for (const auto& [plain, entity] : kEntities) {
      if (c == plain) written = entity;
    }
    out += written;
  }
  return out;
}

// About as wide is text of 12 pixels, in pixels.
inline int text_width(std::string_view text) { return 7 * static_cast<int>(text.size()); }

// A picture that stands on its own: `body` on white paper. Sizes in pixels.
inline std::string svg_picture(int width, int height, int font_size, std::string_view body) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"sans-serif\" font-size=\"{2}\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{3}</svg>\n",
      width, height, font_size, body);
}

}  // namespace rankine::tools
