// Console is the input, output and exit codes of a subcommand. This header also declares progress
// lines, interruption by signals, line-wise input, checked output, text wrapping and the user's
// working directory.
#pragma once

#include <chrono>
#include <csignal>
#include <cstddef>
#include <deque>
#include <functional>
#include <iosfwd>
#include <ostream>
#include <stdexcept>
#include <streambuf>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace rankine::tools {

// Exit codes of the process, the same for every subcommand.
enum class Exit : int {
  ok = 0,
  wrong = 1,          // wrong data, a failed proof, or below a requested floor
  usage = 2,          // invalid arguments
  environment = 3,    // the machine refuses memory, threads or files
  timeout = 124,      // as of timeout(1)
  interrupted = 130,  // by SIGINT; measurements so far have been printed
  terminated = 143,   // by SIGTERM; measurements so far have been printed
};

Exit exit_of(Code code);

// `out` gets results only; progress and errors go to `err`.
struct Console {
  std::ostream& out;
  std::ostream& err;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  // If err is not a terminal: long work prints its progress to err after this number of seconds,
  // and again each time the elapsed time has doubled. 0: no progress.
  double progress_after = 0;
  std::vector<std::string> arguments = {};  // as given, for reports
};

// ", 20 s left": assumes that each remaining case takes as long as the finished ones on average;
// empty during the first second, and if no case is done or left.
std::string time_left(std::size_t done, std::size_t all, double seconds);

// The progress of long work: a line on stderr that is rewritten in place. If stderr is not a
// terminal, an occasional line (Console::progress_after). Not thread-safe.
class Progress {
 public:
  explicit Progress(Console& console) : console_(console) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::string_view text);
  bool due();    // true at most ten times a second: for frequent updates
  void clear();  // call before any output, and at the end

 private:
  using Clock = std::chrono::steady_clock;
  Console& console_;
  std::size_t width_ = 0;  // width of the current line
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point was_due_ = begin_;
  double next_line_ = console_.progress_after;  // seconds since the beginning
};

// The signal since the newest InterruptGuard was made, SIGINT or SIGTERM; 0: none. Long work polls
// it. Callable from any thread.
int interruption() noexcept;
// 128 plus the signal's number, as in shells. Requires interruption() != 0.
Exit exit_of_interruption();

// During its lifetime, the first SIGINT and the first SIGTERM only set interruption(): the work
// ends and reports its measurements so far. A second signal ends the process at once; a signal that
// the process ignores stays ignored. One guard at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction on_interrupt_, on_terminate_;  // previous handlers
};

// Calls read(in) with the file named by the option; "-" is standard input. Errors: a file that
// cannot be read, and a folder; errors name the option.
Status read_input(std::string_view option, const std::string& file,
                  const std::function<void(std::istream&)>& read);

// Reads the whole input. Error: longer than `most_bytes`.
Result<std::string> read_input(std::string_view option, const std::string& file,
                               std::size_t most_bytes);

// Checks that a file can be read, before another program reads it.
Status check_input(std::string_view option, const std::string& file);

// Makes a file in memory, positioned at its beginning; -1 if that fails.
int file_in_memory(std::string_view text);

// Returns lines of a stream as they arrive: present lines can be answered before more are read.
class LineReader {
 public:
  struct Line {
    std::size_t number;  // from 1
    std::string text;    // without its end
  };

  // Keeps the first most_bytes + 1 bytes of a longer line, so that the caller can tell that the
  // line is too long.
  LineReader(std::istream& in, std::size_t most_bytes) : in_(in), most_bytes_(most_bytes) {}

  // Waits for a whole line, and returns it with all other lines present, up to `most` and to about
  // a mebibyte; incomplete lines stay for later. Empty: end of the stream. Throws the exceptions of
  // the stream's buffer if it cannot be read.
  std::vector<Line> next(std::size_t most);

 private:
  void read_some();
  void append(const char* from, const char* to);
  void end_line();

  std::istream& in_;
  const std::size_t most_bytes_;
  std::deque<Line> whole_;
  std::size_t whole_bytes_ = 0;
  std::string begun_;
  bool in_line_ = false, ended_ = false;
  std::size_t number_ = 0;
};

// "standard output cannot be written: No space left on device"
struct OutputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Collects output and writes it when it is flushed or full. If a write fails, drops the collected
// output and throws OutputError; a stream passes the exception on if its exceptions() have badbit.
// Not flushed on destruction, because errors could not be reported then. Not thread-safe.
class DescriptorBuffer : public std::streambuf {
 public:
  // The caller keeps ownership of the descriptor. `name` is for errors: "standard output".
  DescriptorBuffer(int descriptor, std::string name);

 protected:
  int_type overflow(int_type c) override;
  int sync() override;

 private:
  void write_out();

  const int descriptor_;
  const std::string name_;
  std::vector<char> collected_;
};

// COLUMNS if it is a whole number from 20; otherwise the width of the terminal at standard output,
// if any; otherwise `otherwise`.
int terminal_width(int otherwise);

// Lines of words, none longer than `width` except for a single longer word, each indented by
// `indent` blanks and ended by a line feed.
std::string wrapped(std::string_view text, int width, std::size_t indent);

// Wraps paragraphs, given as one line each, by wrapped(). Paragraphs that begin with a blank are
// for copying and stay unchanged, except for a second column, separated by two or more blanks: that
// column is wrapped.
std::string filled(std::string_view paragraphs, int width);

// Changes to the user's working directory, where relative paths begin: under 'bazel run' a program
// starts in another one. It is RANKINE_WITH_WORKING_DIRECTORY (set by third_party/bazel), else to
// BUILD_WORKING_DIRECTORY (set by Bazel), if this process stands in a program's runfiles;
// otherwise, and if that directory is not accessible, stays. Programs started under 'bazel run'
// inherit both variables and may have changed their directory; hence the condition.
void change_to_user_directory();

}  // namespace rankine::tools
