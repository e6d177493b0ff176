// The input of a subcommand that answers lines: a file, or standard input.
#pragma once

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

}  // namespace rankine::tools
