// Where a subcommand writes, and how it ends.
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

// Ctrl-C while something is being measured: the work comes to an end and what has been measured is
// told. A second one ends the process as ever.

// The signal that came since the newest InterruptGuard was made, SIGINT or SIGTERM; 0: none. What
// takes long looks here every now and then. From any thread.
int interruption() noexcept;
// 128 and the signal's number, as shells have it. Requires interruption() != 0.
Exit exit_of_interruption();

// While it lives, the first SIGINT and the first SIGTERM only make themselves known by
// interruption(). A signal that the process ignores stays ignored. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction on_interrupt_, on_terminate_;  // as they were
};

// The input of a subcommand: a file, or standard input.

// Calls read(in) with what the option names; "-" is standard input. Errors: a file that cannot be
// read, and a folder, by the option's name.
Status read_input(std::string_view option, const std::string& file,
                  const std::function<void(std::istream&)>& read);

// All of it, where it is no longer than `most_bytes`.
Result<std::string> read_input(std::string_view option, const std::string& file,
                               std::size_t most_bytes);

// Whether a file that others will read can be read.
Status check_input(std::string_view option, const std::string& file);

// Lines of a stream as they come: what is there can be answered before more is asked.

class LineReader {
 public:
  struct Line {
    std::size_t number;  // from 1
    std::string text;    // without its end
  };

  // Of longer lines the first most_bytes + 1 bytes are kept, so that who reads them sees that they
  // are too long.
  LineReader(std::istream& in, std::size_t most_bytes) : in_(in), most_bytes_(most_bytes) {}

  // Waits until a whole line is there, and gives that and those that are there besides, up to
  // `most` and to a mebibyte or so; begun lines stay for later. Empty: the end. Throws what the
  // stream's buffer throws where it cannot be read.
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

// A stream over a descriptor that tells why it could not be written: what is printed and goes
// nowhere is no success.

// "standard output cannot be written: No space left on device"
struct OutputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Collects what is printed and writes it when it is flushed or full. Where that fails, what was
// collected is dropped and OutputError thrown, which a stream lets through whose exceptions() have
// badbit. Not flushed when it is destroyed: by then nobody could be told. Not thread-safe.
class DescriptorBuffer : public std::streambuf {
 public:
  // The descriptor stays the caller's. `name` is for errors: "standard output".
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

// How wide a reader's terminal is, and text that keeps to a width.

// Of COLUMNS where that is a whole number from 20, else of the terminal that standard output is,
// else `otherwise`.
int terminal_width(int otherwise);

// Lines of words, none longer than `width` unless a word is, each behind `indent` blanks and ended
// by a line feed.
std::string wrapped(std::string_view text, int width, std::size_t indent);

// Paragraphs, a line each, wrapped(). Those that begin with a blank are to be copied and stay as
// they are, but for what stands in a second column, two blanks or more behind the first: that is
// wrapped.
std::string filled(std::string_view paragraphs, int width);

// Where the user stands, and so where paths that people write begin: under 'bazel run' a program
// starts somewhere else.

// Goes to where RANKINE_WITH_WORKING_DIRECTORY says (third_party/bazel sets it), else
// BUILD_WORKING_DIRECTORY (Bazel does), if this process stands in a program's runfiles; else, and
// where that directory is not to be had, stays. Both variables are inherited by whatever a program
// under 'bazel run' starts, which may have gone elsewhere: hence the condition.
void stand_where_the_user_stands();

}  // namespace rankine::tools
