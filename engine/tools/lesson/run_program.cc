#include "engine/tools/lesson/run_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <utility>

#include "engine/base/environment_variable.h"
#include "engine/tools/interrupt.h"

namespace rankine::tools {
namespace {

using Clock = std::chrono::steady_clock;

// A pipe that a program writes into, and what came out of it so far.
struct Stream {
  int read = -1, write = -1;
  std::string text{};

  Stream() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) == 0) read = ends[0], write = ends[1];
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    close_end(read);
    close_end(write);
  }
  static void close_end(int& end) {
    if (end >= 0) close(std::exchange(end, -1));
  }
  // Reads once, and closes the pipe if nothing is left to read.
  void take() {
    std::array<char, 1 << 14> part;
    const ssize_t got = ::read(read, part.data(), part.size());
    if (got > 0) {
      text.append(part.data(), static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      close_end(read);
    }
  }
};

Status cannot_run(const std::string& program, int error) {
  return Status(Code::system, fmt::format("'{}' cannot be run: {}", program, std::strerror(error)));
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

void limit(__rlimit_resource what, rlim_t most) {
  const rlimit both{most, most};
  setrlimit(what, &both);
}

// In the child after fork(), so only what a signal handler may call. Returns if it fails.
void become(const std::vector<char*>& words, const std::vector<char*>& variables,
            const char* folder, int out, int err, const ProgramLimits& limits, rlim_t cpu_seconds) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // also where this process is killed
  signal(SIGPIPE, SIG_DFL);          // the tool itself ignores it
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing < 0 || chdir(folder) != 0 || dup2(nothing, STDIN_FILENO) < 0 ||
      dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0) {
    return;
  }
  close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, cpu_seconds);
  limit(RLIMIT_FSIZE, limits.memory);
  limit(RLIMIT_AS, limits.memory);
  execvpe(words[0], words.data(), variables.data());
}

// The process, which leads a session and a process group of its own.
Result<pid_t> start(Program& program, const Stream& out, const Stream& err,
                    const ProgramLimits& limits) {
  const char* const path = environment_variable("PATH");
  program.variables.push_back(std::string("PATH=") + (path != nullptr ? path : "/usr/bin:/bin"));
  const std::vector<char*> words = pointers_to(program.words),
                           variables = pointers_to(program.variables);
  // Against a process that leaves the group where this one cannot look for it.
  const auto cpu_seconds = static_cast<rlim_t>(limits.time.count() + 1) *
                           std::max(1U, std::thread::hardware_concurrency());
  Stream failed;  // says why there is no program; closed by exec
  if (failed.read < 0) return cannot_run(program.words[0], errno);
  const pid_t child = fork();
  if (child < 0) return cannot_run(program.words[0], errno);
  if (child == 0) {
    become(words, variables, program.folder.c_str(), out.write, err.write, limits, cpu_seconds);
    const int error = errno;
    [[maybe_unused]] const ssize_t told = write(failed.write, &error, sizeof(error));
    _exit(127);
  }
  Stream::close_end(failed.write);
  while (failed.read >= 0) failed.take();
  if (failed.text.empty()) return child;
  waitpid(child, nullptr, 0);
  int error = 0;
  std::memcpy(&error, failed.text.data(), std::min(failed.text.size(), sizeof(error)));
  return cannot_run(program.words[0], error);
}

// Whether the process has ended. It stays there until it is waited for, and so does its group.
bool has_ended(pid_t child) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid != 0;
}

// Until the program has ended, whether or not it has closed its output, and whether or not its
// children keep that open. Errors: which limit is broken.
Status read_all(pid_t child, Stream& out, Stream& err, const ProgramLimits& limits) {
  const auto end = Clock::now() + limits.time;
  for (;;) {
    if (interruption() != 0) return {Code::aborted, "interrupted"};
    const bool ended = has_ended(child);
    if (ended) {  // what it wrote is there by now
      for (Stream* one : {&out, &err}) {
        if (one->read >= 0) fcntl(one->read, F_SETFL, O_NONBLOCK);
        while (one->read >= 0 && one->text.size() <= limits.bytes) one->take();
      }
    }
    if (std::max(out.text.size(), err.text.size()) > limits.bytes) {
      return invalid_argument(fmt::format("it prints more than {} bytes", limits.bytes));
    }
    if (ended) return {};
    if (Clock::now() >= end) {
      return invalid_argument(fmt::format("no end within {} s", limits.time.count()));
    }
    // Without output to wait for, the end is looked for often. A signal that comes before poll()
    // begins does not end it.
    const int look_ms = out.read < 0 && err.read < 0 ? 1 : 100;
    pollfd both[] = {{out.read, POLLIN, 0}, {err.read, POLLIN, 0}};
    if (poll(both, 2, look_ms) <= 0) continue;
    if (both[0].revents != 0) out.take();
    if (both[1].revents != 0) err.take();
  }
}

// Processes that the program has started and that have left its group. When their parent ends, the
// kernel makes them children of this process, which ends them.
class Orphans {
 public:
  Orphans() : others_(children()) {
    prctl(PR_GET_CHILD_SUBREAPER, &was_adopting_);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  ~Orphans() { prctl(PR_SET_CHILD_SUBREAPER, was_adopting_); }
  Orphans(const Orphans&) = delete;
  Orphans& operator=(const Orphans&) = delete;

  // Until none is left: a process that ends leaves its own children.
  void end() const {
    for (bool found = true; found;) {
      found = false;
      for (const pid_t child : children()) {
        if (others_.contains(child)) continue;
        kill(child, SIGKILL);
        while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
        }
        found = true;
      }
    }
  }

 private:
  static std::set<pid_t> children() {
    std::set<pid_t> found;
    std::error_code error;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
      std::ifstream list(task.path() / "children");
      for (pid_t child = 0; list >> child;) found.insert(child);
    }
    return found;
  }

  std::set<pid_t> others_;
  int was_adopting_ = 0;
};

}  // namespace

Result<ProgramEnd> run_program(Program program, const ProgramLimits& limits) {
  Stream out, err;
  if (out.read < 0 || err.read < 0) return cannot_run(program.words[0], errno);
  const Orphans orphans;
  const auto child = start(program, out, err, limits);
  if (!child.ok()) return child.status();
  Stream::close_end(out.write);
  Stream::close_end(err.write);
  const Status broken = read_all(*child, out, err, limits);
  kill(-*child, SIGKILL);
  int status = 0;
  while (waitpid(*child, &status, 0) < 0 && errno == EINTR) {
  }
  orphans.end();
  if (!broken.ok()) return broken;
  ProgramEnd end{std::move(out.text), std::move(err.text)};
  if (WIFSIGNALED(status)) end.failure = strsignal(WTERMSIG(status));
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
    end.failure = fmt::format("exit status {}", WEXITSTATUS(status));
  }
  return end;
}

}  // namespace rankine::tools
