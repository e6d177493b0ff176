// Where a subcommand writes, and how it ends.
#pragma once

#include <chrono>
#include <cstddef>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace rankine::tools {

// Exit codes of the process, the same for every subcommand.
enum class Exit : int {
  ok = 0,
  wrong = 1,          // wrong data, a failed proof, or below a floor that was asked for
  usage = 2,          // arguments
  environment = 3,    // memory, threads or files that the machine refuses
  timeout = 124,      // as of timeout(1)
  interrupted = 130,  // by SIGINT; what was measured has been told
  terminated = 143,   // by SIGTERM, the same
};

Exit exit_of(Code code);

// Results go to `out` and nothing else does; progress and errors go to `err`.
struct Console {
  std::ostream& out;
  std::ostream& err;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  std::vector<std::string> arguments = {};  // as they were given, for reports
};

// ", 20 s left": as long again per case as the cases that are done took; nothing before a second
// has passed or where nothing is done or left.
std::string time_left(std::size_t done, std::size_t all, double seconds);

// A line on stderr that is rewritten in place; silent where stderr is no terminal. Not thread-safe.
class Progress {
 public:
  explicit Progress(Console& console) : console_(console) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::string_view text);
  bool due();    // at most ten times a second: for what comes more often than anybody reads
  void clear();  // before anything is printed, and at the end

 private:
  Console& console_;
  std::size_t width_ = 0;  // of the line that stands there now
  std::chrono::steady_clock::time_point was_due_ = std::chrono::steady_clock::now();
};

}  // namespace rankine::tools
