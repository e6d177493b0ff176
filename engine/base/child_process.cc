#include "engine/base/child_process.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

namespace rankine {
namespace {

// noexcept: what is no std::exception ends the child, and never reaches the parent's frames.
[[noreturn]] void live(const std::function<int()>& body, pid_t parent,
                       const ChildOptions& options) noexcept {
  prctl(PR_SET_PDEATHSIG, options.when_parent_ends);
  if (getppid() != parent) _exit(1);  // the parent ended before prctl()
  if (options.leads_group) setpgid(0, 0);
  try {
    _exit(body());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "child process: %s\n", error.what());
    _exit(1);
  }
}

}  // namespace

std::string describe_end(int status) {
  if (WIFEXITED(status)) return "exit " + std::to_string(WEXITSTATUS(status));
  if (!WIFSIGNALED(status)) return "not started";
  return "signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
}

ChildProcess::ChildProcess(const std::function<int()>& body, const ChildOptions& options)
    : parent_(getpid()), id_(fork()), leads_group_(options.leads_group) {
  if (id_ == 0) live(body, parent_, options);
  id_ = std::max(id_, 0);
}

void ChildProcess::swap(ChildProcess& other) noexcept {
  std::swap(parent_, other.parent_);
  std::swap(id_, other.id_);
  std::swap(leads_group_, other.leads_group_);
  std::swap(status_, other.status_);
}

void ChildProcess::send(int signal) const {
  if (id_ > 0 && parent_ == getpid()) kill(id_, signal);
}

// Returns true if the child has ended.
bool ChildProcess::reap(int flags) {
  if (id_ == 0 || parent_ != getpid()) return true;
  pid_t ended = 0;
  do {
    ended = waitpid(id_, &status_, flags);
  } while (ended < 0 && errno == EINTR);
  if (ended == 0) return false;
  if (ended < 0) status_ = -1;  // other code of the program has waited for it
  if (leads_group_) kill(-id_, SIGKILL);
  id_ = 0;
  return true;
}

int ChildProcess::wait() {
  reap(0);
  return status_;
}

std::optional<int> ChildProcess::wait(std::chrono::duration<double> patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!reap(WNOHANG)) {
    if (std::chrono::steady_clock::now() >= until) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return status_;
}

int ChildProcess::end() {
  send(SIGKILL);
  return wait();
}

ChildProcess start_program(std::vector<std::string> words, const ProgramStreams& streams,
                           const ChildOptions& options) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  return ChildProcess(
      [&] {
        for (const int signal : {SIGINT, SIGPIPE, SIGTERM}) std::signal(signal, SIG_DFL);
        const std::pair<int, int> all[] = {
            {streams.in, STDIN_FILENO}, {streams.out, STDOUT_FILENO}, {streams.err, STDERR_FILENO}};
        for (const auto& [from, to] : all) {
          if (dup2(from, to) < 0) close(to);
        }
        execvp(arguments[0], arguments.data());
        return 127;
      },
      options);
}

}  // namespace rankine
