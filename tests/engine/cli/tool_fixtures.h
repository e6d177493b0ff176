// Fixtures of the tool's tests: run_captured() runs the tool inside the test, ToolProcess runs it
// as a child process, and xml_error() checks the XML of its pictures.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <csignal>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/cli/tool.h"
#include "engine/lab/commands.h"

namespace rankine::tools {

struct Captured {
  int exit = -1;
  std::string out, err;
};

inline Captured run_captured(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  Console console{.out = out, .err = err};
  Captured captured;
  captured.exit = static_cast<int>(run_lab(arguments, console));
  captured.out = out.str();
  captured.err = err.str();
  return captured;
}

// ToolProcess runs the program as a child process, with standard streams as from a shell.

class ToolProcess {
 public:
  static constexpr int kPipe = -1, kClosed = -2;
  static constexpr int kPatienceMs = 60'000;  // for any output that should come at once

  // `out`: the child's standard output, a descriptor or one of the two constants above. Its
  // standard input is a pipe. Signals that this process ignores have their default action in the
  // child.
  explicit ToolProcess(std::vector<std::string> arguments, int out = kPipe) {
    arguments.insert(arguments.begin(), "engine/cli/rankine");
    std::vector<char*> argv;
    for (std::string& each : arguments) argv.push_back(each.data());
    argv.push_back(nullptr);
    int in[2], made[2] = {-1, -1};
    if (pipe2(in, O_CLOEXEC) != 0 || (out == kPipe && pipe2(made, O_CLOEXEC) != 0)) return;
    in_ = in[1];
    out_ = made[0];
    err_ = memfd_create("stderr", MFD_CLOEXEC);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err_, STDERR_FILENO);
    if (out == kClosed) {
      posix_spawn_file_actions_addclose(&actions, STDOUT_FILENO);
    } else {
      posix_spawn_file_actions_adddup2(&actions, out == kPipe ? made[1] : out, STDOUT_FILENO);
    }
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t as_usual;
    sigemptyset(&as_usual);
    for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) sigaddset(&as_usual, signal);
    posix_spawnattr_setsigdefault(&attributes, &as_usual);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    if (posix_spawn(&pid_, argv[0], &actions, &attributes, argv.data(), environ) != 0) pid_ = -1;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    if (made[1] >= 0) close(made[1]);
  }
  ~ToolProcess() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      wait();
    }
    for (int* each : {&in_, &out_, &err_}) shut(*each);
  }
  ToolProcess(const ToolProcess&) = delete;
  ToolProcess& operator=(const ToolProcess&) = delete;

  bool started() const { return pid_ > 0; }
  pid_t id() const { return pid_; }
  void signal(int number) const { kill(pid_, number); }

  bool ask(const std::string& text) const {
    return write(in_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  }
  void close_in() { shut(in_); }
  void close_out() { shut(out_); }

  // The next line of output, with its end. At the end of the output, or after a time-out, returns
  // the remaining text.
  std::string line() {
    for (;;) {
      const std::size_t end = printed_.find('\n');
      if (end != std::string::npos) {
        const std::string first = printed_.substr(0, end + 1);
        printed_.erase(0, end + 1);
        return first;
      }
      pollfd there{.fd = out_, .events = POLLIN, .revents = 0};
      char part[4096];
      const ssize_t got =
          poll(&there, 1, kPatienceMs) == 1 ? read(out_, part, sizeof(part)) : ssize_t{0};
      if (got <= 0) return std::exchange(printed_, {});
      printed_.append(part, static_cast<std::size_t>(got));
    }
  }
  std::string rest() {
    std::string all;
    for (std::string next; !(next = line()).empty();) all += next;
    return all;
  }

  // The exit code, or 1000 plus the number of the signal that ended the process. Must be called
  // once only.
  int wait() {
    int status = 0;
    const pid_t pid = std::exchange(pid_, -1);
    if (waitpid(pid, &status, 0) != pid) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  std::string err() const {
    std::string text(static_cast<std::size_t>(lseek(err_, 0, SEEK_END)), '\0');
    if (pread(err_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) return {};
    return text;
  }

 private:
  static void shut(int& descriptor) {
    if (descriptor >= 0) close(descriptor);
    descriptor = -1;
  }
  pid_t pid_ = -1;
  int in_ = -1, out_ = -1, err_ = -1;
  std::string printed_;
};

// A strict reader of the pictures' XML: elements, attributes in double quotes, text.

// Empty if `xml` is one well-formed element and white space; else a description of the error.
inline std::string xml_error(std::string_view xml) {
  std::vector<std::string> open;
  bool had_root = false;
  const auto entity = [&](std::size_t at) {
    for (const std::string_view known : {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"}) {
      if (xml.substr(at).starts_with(known)) return true;
    }
    return false;
  };
  std::size_t at = 0;
  const auto name_at = [&] {
    const std::size_t first = at;
    while (at < xml.size() && (std::isalnum(static_cast<unsigned char>(xml[at])) != 0 ||
                               xml[at] == '-' || xml[at] == ':')) {
      ++at;
    }
    return std::string(xml.substr(first, at - first));
  };
  const auto skip_blanks = [&] {
    while (at < xml.size() && std::isspace(static_cast<unsigned char>(xml[at])) != 0) ++at;
  };
  while (at < xml.size()) {
    if (xml[at] != '<') {
      if (open.empty() && std::isspace(static_cast<unsigned char>(xml[at])) == 0) {
        return "text outside of the element";
      }
      if (xml[at] == '>' || (xml[at] == '&' && !entity(at))) return "a bare & or >";
      ++at;
      continue;
    }
    ++at;
    if (at < xml.size() && xml[at] == '/') {
      ++at;
      const std::string name = name_at();
      if (open.empty() || open.back() != name) return "</" + name + "> closes nothing";
      open.pop_back();
      if (at >= xml.size() || xml[at++] != '>') return "</" + name + " does not end";
      continue;
    }
    const std::string name = name_at();
    if (name.empty()) return "< without a name";
    if (open.empty() && had_root) return "a second element";
    had_root = true;
    for (skip_blanks(); at < xml.size() && xml[at] != '>' && xml[at] != '/'; skip_blanks()) {
      const std::string attribute = name_at();
      if (attribute.empty() || !xml.substr(at).starts_with("=\"")) return "attributes of " + name;
      for (at += 2; at < xml.size() && xml[at] != '"'; ++at) {
        if (xml[at] == '<' || (xml[at] == '&' && !entity(at))) return "a value of " + name;
      }
      ++at;
    }
    const bool empty = at < xml.size() && xml[at] == '/';
    if (empty) ++at;
    if (at >= xml.size() || xml[at++] != '>') return "<" + name + " does not end";
    if (!empty) open.push_back(name);
  }
  if (!had_root) return "no element";
  return open.empty() ? "" : "<" + open.back() + "> is never closed";
}

}  // namespace rankine::tools
