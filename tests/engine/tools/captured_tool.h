// The tool run inside the test: what it wrote and how it ended.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "engine/tools/tool.h"

namespace rankine::tools {

struct Captured {
  int exit = -1;
  std::string out, err;
};

inline Captured run_captured(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  Console console{.out = out, .err = err};
  Captured captured;
  captured.exit = static_cast<int>(run_tool(arguments, console));
  captured.out = out.str();
  captured.err = err.str();
  return captured;
}

}  // namespace rankine::tools
