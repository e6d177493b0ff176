// Rows of text as columns, for a terminal.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rankine::tools {

// Columns are as wide as their widest cell, two blanks apart; `alignment` has, for each column, 'r'
// where cells stand on the right. Each row ends with a line feed, and not with blanks.
inline std::string columns(const std::vector<std::vector<std::string>>& rows,
                           std::string_view alignment, std::string_view indent = "") {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line(indent);
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - row[i].size(), ' ');
      const bool right = i < alignment.size() && alignment[i] == 'r';
      if (i > 0) line += "  ";
      line += right ? blanks + row[i] : row[i] + blanks;
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out += line + "\n";
  }
  return out;
}

}  // namespace rankine::tools
