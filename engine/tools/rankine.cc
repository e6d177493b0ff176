// The program: streams and an exit code around run_tool().
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "engine/tools/output_stream.h"
#include "engine/tools/tool.h"
#include "engine/tools/working_directory.h"

namespace {

// A descriptor that is closed would go to the first file that is opened, and what is printed into
// that file. This one can be written to as little.
void keep_taken(int descriptor) {
  while (fcntl(descriptor, F_GETFD) == -1) {
    if (open("/dev/null", O_RDONLY) < 0) return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  keep_taken(STDIN_FILENO);
  keep_taken(STDOUT_FILENO);
  keep_taken(STDERR_FILENO);
  rankine::tools::stand_where_the_user_stands();
  std::ios::sync_with_stdio(false);
  // Who reads no further is no reason to die without a word: writing fails instead.
  std::signal(SIGPIPE, SIG_IGN);
  rankine::tools::DescriptorBuffer buffer(STDOUT_FILENO, "standard output");
  std::ostream out(&buffer);
  rankine::tools::Console console{.out = out,
                                  .err = std::cerr,
                                  .out_is_terminal = isatty(STDOUT_FILENO) == 1,
                                  .err_is_terminal = isatty(STDERR_FILENO) == 1,
                                  .progress_after = 5};
  return static_cast<int>(rankine::tools::run_tool({argv + 1, argv + argc}, console));
}
