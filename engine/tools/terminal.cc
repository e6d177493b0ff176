#include "engine/tools/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "engine/base/environment_variable.h"

namespace rankine::tools {

namespace {

std::string in_columns(std::string_view line, int width) {
  const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t gap = line.find("  ", first);
  const std::size_t second = line.find_first_not_of(' ', gap);
  if (line.size() <= static_cast<std::size_t>(width) || second == std::string_view::npos) {
    return std::string(line) + "\n";
  }
  const std::string behind = wrapped(line.substr(second), width, second);
  return std::string(line.substr(0, second)) + behind.substr(second);
}

}  // namespace

int terminal_width(int otherwise) {
  constexpr int kNarrowest = 20;
  if (const char* value = environment_variable("COLUMNS")) {
    const std::string_view text = value;
    int columns = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), columns);
    if (error == std::errc() && end == text.data() + text.size() && columns >= kNarrowest) {
      return columns;
    }
  }
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return otherwise;
  return std::max<int>(kNarrowest, size.ws_col);
}

std::string wrapped(std::string_view text, int width, std::size_t indent) {
  const std::string margin(indent, ' ');
  std::string out, line;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    if (!line.empty() && indent + line.size() + 1 + word.size() > static_cast<std::size_t>(width)) {
      out += margin + line + "\n";
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
  }
  if (!line.empty()) out += margin + line + "\n";
  return out;
}

std::string filled(std::string_view paragraphs, int width) {
  std::string out;
  while (!paragraphs.empty()) {
    const std::size_t end = std::min(paragraphs.find('\n'), paragraphs.size());
    const std::string_view one = paragraphs.substr(0, end);
    paragraphs.remove_prefix(std::min(end + 1, paragraphs.size()));
    const bool copied = one.empty() || one.front() == ' ';
    out += copied ? in_columns(one, width) : wrapped(one, width, 0);
  }
  return out;
}

}  // namespace rankine::tools
