#include "engine/tools/input_stream.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>

namespace rankine::tools {

Status read_input(std::string_view option, const std::string& file,
                  const std::function<void(std::istream&)>& read) {
  if (file == "-") {
    read(std::cin);
    return {};
  }
  std::ifstream in(file, std::ios::binary);
  const int error = errno;
  std::error_code unknown;
  const bool folder = std::filesystem::is_directory(file, unknown);  // opens, and has no lines
  if (!in || folder) {
    return Status(Code::system, fmt::format("{} is '{}', which cannot be read: {}", option, file,
                                            std::strerror(folder ? EISDIR : error)));
  }
  read(in);
  return {};
}

}  // namespace rankine::tools
