// The input of a subcommand: a file, or standard input.
#pragma once

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace rankine::tools {

// Calls read(in) with what the option names; "-" is standard input. Errors: a file that cannot be
// read, and a folder, by the option's name.
Status read_input(std::string_view option, const std::string& file,
                  const std::function<void(std::istream&)>& read);

// All of it, where it is no longer than `most_bytes`.
Result<std::string> read_input(std::string_view option, const std::string& file,
                               std::size_t most_bytes);

// Whether a file that others will read can be read.
Status check_input(std::string_view option, const std::string& file);

}  // namespace rankine::tools
