#include "engine/tools/lesson/run_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "engine/tools/interrupt.h"

namespace rankine::tools {
namespace {

using Clock = std::chrono::steady_clock;

// The end of a pipe that a program writes into, and what came out so far.
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

Result<pid_t> start(std::vector<std::string>& words, const Stream& out, const Stream& err) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write, STDERR_FILENO);
  // The tool itself ignores this one.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t as_usual;
  sigemptyset(&as_usual);
  sigaddset(&as_usual, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &as_usual);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t child = -1;
  const int error = posix_spawnp(&child, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return cannot_run(words[0], error);
  return child;
}

// Until both streams have ended. Errors: which limit is broken.
Status read_all(Stream& out, Stream& err, const ProgramLimits& limits) {
  const auto end = Clock::now() + limits.time;
  while (out.read >= 0 || err.read >= 0) {
    if (interruption() != 0) return {Code::aborted, "interrupted"};
    if (Clock::now() >= end) {
      return invalid_argument(fmt::format("no end within {} s", limits.time.count()));
    }
    // A signal that comes before poll() begins does not end it.
    constexpr int kLookMs = 100;
    pollfd both[] = {{out.read, POLLIN, 0}, {err.read, POLLIN, 0}};
    if (poll(both, 2, kLookMs) <= 0) continue;
    if (both[0].revents != 0) out.take();
    if (both[1].revents != 0) err.take();
    if (std::max(out.text.size(), err.text.size()) > limits.bytes) {
      return invalid_argument(fmt::format("it prints more than {} bytes", limits.bytes));
    }
  }
  return {};
}

}  // namespace

Result<ProgramEnd> run_program(std::vector<std::string> words, const ProgramLimits& limits) {
  Stream out, err;
  if (out.read < 0 || err.read < 0) return cannot_run(words[0], errno);
  const auto child = start(words, out, err);
  if (!child.ok()) return child.status();
  Stream::close_end(out.write);
  Stream::close_end(err.write);
  const Status broken = read_all(out, err, limits);
  if (!broken.ok()) kill(*child, SIGKILL);
  int status = 0;
  while (waitpid(*child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!broken.ok()) return broken;
  ProgramEnd end{std::move(out.text), std::move(err.text)};
  if (WIFSIGNALED(status)) end.failure = strsignal(WTERMSIG(status));
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
    end.failure = fmt::format("exit status {}", WEXITSTATUS(status));
  }
  return end;
}

}  // namespace rankine::tools
