// ChildProcess runs a function in a forked child process and tells how the child ended;
// start_program() runs a program in one.
//
// Four kinds of children need fork() itself: copies that go on with the caller's own code (the
// ranks of `rankine perf --processes`), children that outlive their parent, children in another pid
// namespace, and a learner's program (`rankine check`), which leads its own session.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rankine {

// "exit 7" or "signal 9 (Killed)", for a status of waitpid(); "not started" for -1.
std::string describe_end(int status);

struct ChildOptions {
  bool leads_group = false;        // the end of the child ends its process group
  int when_parent_ends = SIGKILL;  // sent when the thread that has forked the child ends
};

class ChildProcess {
 public:
  ChildProcess() = default;
  // Forks. The child calls body() and ends with its result as exit code, or prints the text of an
  // exception and ends with 1; atexit() functions do not run. If fork() fails, runs() is false, and
  // errno has the reason.
  explicit ChildProcess(const std::function<int()>& body, const ChildOptions& options = {});
  // Kills the child, unless this process is a forked copy of the child's parent.
  ~ChildProcess() { end(); }
  ChildProcess(ChildProcess&& other) noexcept { swap(other); }
  ChildProcess& operator=(ChildProcess&& other) noexcept {
    ChildProcess(std::move(other)).swap(*this);
    return *this;
  }

  bool runs() const { return id_ > 0; }  // no wait has seen its end
  pid_t id() const { return id_; }       // 0: it does not run
  void send(int signal) const;           // has no effect if the child does not run

  // The status of waitpid() when the child has ended, and again after that; -1: no child.
  int wait();
  // nullopt: the child has not ended within `patience`.
  std::optional<int> wait(std::chrono::duration<double> patience);
  // Kills the child, and waits.
  int end();

 private:
  void swap(ChildProcess& other) noexcept;
  bool reap(int flags);

  pid_t parent_ = 0, id_ = 0;
  bool leads_group_ = false;
  int status_ = -1;
};

// The standard streams of a program; a stream with a descriptor that is not open is closed.
struct ProgramStreams {
  int in = 0, out = 1, err = 2;
};

// Starts the program words[0], a path or a name in PATH, with default actions for SIGINT, SIGPIPE
// and SIGTERM. Exit code 127: the program cannot be started.
ChildProcess start_program(std::vector<std::string> words, const ProgramStreams& streams,
                           const ChildOptions& options = {});

}  // namespace rankine
