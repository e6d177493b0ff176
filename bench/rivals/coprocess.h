// A child process that answers lines with lines. It never outlives its parent: it is told to end,
// then made to.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace rankine::rivals {

class Coprocess {
 public:
  // arguments[0] is the program. Create all coprocesses in the main thread: they are terminated
  // when that thread ends. patience_s: how long stop() waits for the child to end by itself, and
  // again after SIGTERM.
  explicit Coprocess(std::vector<std::string> arguments, double patience_s = 5);
  ~Coprocess() { stop(); }
  Coprocess(const Coprocess&) = delete;
  Coprocess& operator=(const Coprocess&) = delete;

  // False when it has gone.
  bool send(const std::string& line);

  // The next line of its output; nothing when it has gone or says nothing for limit_s seconds.
  std::optional<std::string> receive(double limit_s);

  // Closes its input and waits; what is still there after patience_s is terminated, then killed.
  // Returns its exit status, or 128 and the number of the signal that ended it. May be called
  // again.
  int stop();

  // The last line of its error output.
  std::string last_words() const;

 private:
  bool wait_for_end(double limit_s);

  const double patience_s_;
  pid_t child_ = -1;
  int to_ = -1;
  int from_ = -1;
  int errors_ = -1;
  int status_ = -1;
  std::string unread_;
};

}  // namespace rankine::rivals
