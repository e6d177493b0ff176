// Files that a subcommand writes.
#pragma once

#include <fmt/format.h>

#include <fstream>
#include <string>
#include <string_view>

#include "engine/exec/status.h"

namespace rankine::tools {

// What was there before is gone. The error names the path.
inline Status write_file(const std::string& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (out) return {};
  return {Code::system, fmt::format("'{}' cannot be written", path)};
}

}  // namespace rankine::tools
