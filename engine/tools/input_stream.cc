#include "engine/tools/input_stream.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>

#include "engine/base/files.h"

namespace rankine::tools {
namespace {

Status unreadable(std::string_view option, const std::string& file, std::string_view why) {
  return {Code::system, fmt::format("{} is '{}', which cannot be read: {}", option, file, why)};
}

}  // namespace

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
  if (!in || folder) return unreadable(option, file, std::strerror(folder ? EISDIR : error));
  read(in);
  return {};
}

Result<std::string> read_input(std::string_view option, const std::string& file,
                               std::size_t most_bytes) {
  if (file != "-") {
    SmallFile whole = read_small_file(file, most_bytes);
    if (whole.ok()) return std::move(whole.text);
    return unreadable(option, file, whole.error);
  }
  std::string text;
  std::array<char, 1 << 16> part;
  while (std::cin.read(part.data(), part.size()), std::cin.gcount() > 0) {
    text.append(part.data(), static_cast<std::size_t>(std::cin.gcount()));
    if (text.size() > most_bytes) {
      return invalid_argument(
          fmt::format("standard input has more than {} bytes; no more are read", most_bytes));
    }
  }
  return text;
}

Status check_input(std::string_view option, const std::string& file) {
  if (access(file.c_str(), R_OK) == 0) return {};
  return unreadable(option, file, std::strerror(errno));
}

}  // namespace rankine::tools
