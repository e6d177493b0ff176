// The program: streams and an exit code around run_tool().
#include <unistd.h>

#include <iostream>

#include "engine/tools/tool.h"

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  rankine::tools::Console console{.out = std::cout,
                                  .err = std::cerr,
                                  .out_is_terminal = isatty(STDOUT_FILENO) == 1,
                                  .err_is_terminal = isatty(STDERR_FILENO) == 1};
  const auto exit = rankine::tools::run_tool({argv + 1, argv + argc}, console);
  std::cout << std::flush;
  return static_cast<int>(exit);
}
