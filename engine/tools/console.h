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
  // Where err is no terminal: after so many seconds long work says there how far it is, and again
  // each time it has taken twice as long. 0: it says nothing.
  double progress_after = 0;
  std::vector<std::string> arguments = {};  // as they were given, for reports
};

// ", 20 s left": as long again per case as the cases that are done took; nothing before a second
// has passed or where nothing is done or left.
std::string time_left(std::size_t done, std::size_t all, double seconds);

// How far long work is: a line on stderr that is rewritten in place. Where stderr is no terminal, a
// line now and then (Console::progress_after). Not thread-safe.
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
  using Clock = std::chrono::steady_clock;
  Console& console_;
  std::size_t width_ = 0;  // of the line that stands there now
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point was_due_ = begin_;
  double next_line_ = console_.progress_after;  // seconds since the beginning
};

}  // namespace rankine::tools
