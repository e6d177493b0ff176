// Helpers that run a part of a test in a separate process: a forked child, or a spawned program
// such as process_rank.cc. Tests use them for code that ends or permanently changes its process.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/child_process.h"
#include "engine/base/files.h"

namespace rankine::testing_processes {

#if defined(__SANITIZE_THREAD__)
constexpr bool kChildrenMayHaveThreads = false;  // children of a process that has threads
#else
constexpr bool kChildrenMayHaveThreads = true;
#endif

// True in a forked child; run_in_child() and tests that call fork() set it.
inline bool is_child = false;

// LeakSanitizer calls this at exit(). In a child, memory that only the stacks of the parent's other
// threads point to looks leaked.
extern "C" [[gnu::used]] inline int __lsan_is_turned_off() { return is_child ? 1 : 0; }

// Returns describe_end() of the child, or "hung" if it did not end within `patience`.
inline std::string end_of(ChildProcess& child, std::chrono::seconds patience) {
  const std::optional<int> status = child.wait(patience);
  return status ? describe_end(*status) : "hung";
}

// Runs f in a forked child and returns how the child ended; the result of f is the exit code. A
// process without other threads may call it under every sanitizer.
inline std::string run_in_child(const std::function<int()>& f) {
  ChildProcess child([&] {
    is_child = true;
    return f();
  });
  return end_of(child, std::chrono::seconds(60));
}

// A program that runs beside the test. Its standard input and output are pipes.
class Spawned {
 public:
  static constexpr int kPipe = -1, kClosed = -2;
  static constexpr std::chrono::seconds kPrompt{60};     // for output that should come at once
  static constexpr std::chrono::seconds kPatience{240};  // for the end

  // `variables`, such as "RANKINE_ISA=portable", are added to this process's environment. `out`:
  // the standard output, a descriptor or one of the two constants above.
  explicit Spawned(std::vector<std::string> words, std::vector<std::string> variables = {},
                   int out = kPipe) {
    int in[2], made[2] = {-1, -1};
    if (pipe2(in, O_CLOEXEC) != 0 || (out == kPipe && pipe2(made, O_CLOEXEC) != 0)) return;
    in_ = in[1];
    out_ = made[0];
    err_ = memfd_create("stderr", MFD_CLOEXEC);
    if (!variables.empty()) {
      variables.insert(variables.begin(), "env");
      words.insert(words.begin(), variables.begin(), variables.end());
    }
    child_ = start_program(std::move(words), {in[0], out == kPipe ? made[1] : out, err_});
    close(in[0]);
    if (made[1] >= 0) close(made[1]);
  }
  ~Spawned() {
    for (int* each : {&in_, &out_, &err_}) shut(*each);
  }
  Spawned(Spawned&& other) noexcept
      : in_(std::exchange(other.in_, -1)),
        out_(std::exchange(other.out_, -1)),
        err_(std::exchange(other.err_, -1)),
        printed_(std::move(other.printed_)),
        child_(std::move(other.child_)) {}
  Spawned& operator=(Spawned&&) = delete;

  pid_t id() const { return child_.id(); }
  void send(int signal) const { child_.send(signal); }
  bool ask(const std::string& text) const { return write_all(in_, text) == 0; }
  void close_in() { shut(in_); }
  void close_out() { shut(out_); }

  // The next line of output, with its end. At the end of the output, or after `patience`, returns
  // the remaining text.
  std::string line(std::chrono::milliseconds patience = kPrompt) {
    for (;;) {
      const std::size_t end = printed_.find('\n');
      if (end != std::string::npos) {
        const std::string first = printed_.substr(0, end + 1);
        printed_.erase(0, end + 1);
        return first;
      }
      pollfd there{.fd = out_, .events = POLLIN, .revents = 0};
      char part[4096];
      const int ready = poll(&there, 1, static_cast<int>(patience.count()));
      const ssize_t got = ready == 1 ? read(out_, part, sizeof(part)) : ssize_t{0};
      if (got <= 0) return std::exchange(printed_, {});
      printed_.append(part, static_cast<std::size_t>(got));
    }
  }
  std::string rest(std::chrono::milliseconds patience = kPrompt) {
    std::string all;
    for (std::string next; !(next = line(patience)).empty();) all += next;
    return all;
  }
  std::string err() const {
    std::string text(static_cast<std::size_t>(lseek(err_, 0, SEEK_END)), '\0');
    if (pread(err_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) return {};
    return text;
  }

  // The exit code, or 1000 plus the number of the signal that ended the program.
  int wait() {
    const int status = child_.wait();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  // Returns the rest of the output, and the end of the program if it is not "exit 0", which also
  // prints its errors. A program that is stopped or hangs is killed.
  std::string finish() {
    std::string text = rest(kPatience);
    if (const std::string end = end_of(child_, kPatience); end != "exit 0") {
      std::fputs(err().c_str(), stderr);
      text += "(" + end + ")";
    }
    return text;
  }

 private:
  static void shut(int& descriptor) {
    if (descriptor >= 0) close(descriptor);
    descriptor = -1;
  }

  int in_ = -1, out_ = -1, err_ = -1;
  std::string printed_;
  ChildProcess child_;
};

// Processes that play ranks (process_rank.cc) under fresh names. The tests compare the output of
// the processes with the expected output.

// Returns a name that no other test uses, even in another pid namespace.
inline std::string fresh_name() {
  static const unsigned mine = std::random_device()();
  static int names = 0;
  return "test." + std::to_string(mine) + "." + std::to_string(++names);
}
inline std::string path_of(const std::string& name) { return "/dev/shm/rankine." + name; }
inline bool exists(const std::string& name) { return access(path_of(name).c_str(), F_OK) == 0; }

// Starts a process that plays the ranks of `plays`: "2" or "0,3".
inline Spawned process(const std::string& name, const std::string& plays, int ranks,
                       const std::string& play, int at = 0,
                       const std::vector<std::string>& variables = {}, int signal = SIGKILL) {
  return Spawned({"tests/engine/api/process_rank", name, plays, std::to_string(ranks), play,
                  std::to_string(at), std::to_string(signal)},
                 variables);
}

}  // namespace rankine::testing_processes
