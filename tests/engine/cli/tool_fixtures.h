// Fixtures of the tool's tests: run_line() runs a command line inside the test, ToolProcess runs
// the program as a child process. Further functions read files, JSON and the XML of pictures.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/cli/tool.h"
#include "engine/lab/commands.h"
#include "engine/lab/lesson/course.h"

namespace rankine::tools {

struct Captured {
  int exit = -1;
  std::string out, err;
};

inline Captured run_captured(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  Console console{.out = out, .err = err};
  const int exit = static_cast<int>(run_lab(arguments, console));
  return {exit, out.str(), err.str()};
}

// Words between blanks, as a shell reads them; single quotes hold blanks.
inline std::vector<std::string> words_of(std::string_view line) { return command_words(line); }

inline Captured run_line(const std::string& line) { return run_captured(words_of(line)); }

// The lines of a text without their ends.
inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The output of a command that must succeed.
inline std::string output_of(const std::string& line) {
  const Captured run = run_line(line);
  EXPECT_EQ(run.exit, 0) << line << ": " << run.err;
  return run.out;
}
// The JSON of such a command, or the JSON of its lines.
inline nlohmann::ordered_json json_of(const std::string& line) {
  return nlohmann::ordered_json::parse(output_of(line), nullptr, false);
}
inline std::vector<nlohmann::ordered_json> json_lines_of(const std::string& line) {
  std::vector<nlohmann::ordered_json> all;
  for (const std::string& one : lines_of(output_of(line))) {
    all.push_back(nlohmann::ordered_json::parse(one, nullptr, false));
  }
  return all;
}

inline bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}
inline std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++count;
  return count;
}

inline std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
// A file in the test's folder; returns its path.
inline std::string file_with(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}
inline std::string new_folder() {
  std::string folder = testing::TempDir() + "/folder_XXXXXX";
  return mkdtemp(folder.data()) != nullptr ? folder : "";
}

// RANKINE_TUNING during its lifetime: by default a new file, so the user's cache stays as it is;
// afterwards "off", as third_party/test sets it. A process reads its table once.
class OwnTuning {
 public:
  explicit OwnTuning(std::string value = new_folder() + "/tuning.json") : file(std::move(value)) {
    set(file);
  }
  ~OwnTuning() { set("off"); }
  OwnTuning(const OwnTuning&) = delete;
  OwnTuning& operator=(const OwnTuning&) = delete;
  static void set(const std::string& value) { setenv("RANKINE_TUNING", value.c_str(), 1); }

  const std::string file;
};

struct Shell {
  int exit = -1;
  std::string text;  // standard output and standard error
};
inline Shell run_shell(const std::string& line) {
  Shell said;
  FILE* pipe = popen(("{ " + line + "\n} 2>&1").c_str(), "r");
  if (pipe == nullptr) return said;
  for (int c; (c = std::fgetc(pipe)) != EOF;) said.text += static_cast<char>(c);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) said.exit = WEXITSTATUS(status);
  return said;
}

// What a document shows of a command: standard output, and errors if it fails. A slow machine also
// prints progress.
inline std::string shown_by(const std::string& line) {
  return run_shell("{ errors=$({ " + line +
                   "\n} 2>&1 1>&3); } 3>&1 || [ -z \"$errors\" ] || "
                   "echo \"$errors\"")
      .text;
}

inline bool is_well_formed(const std::string& xml) {
  const std::string file = file_with("picture.xml", xml);
  return run_shell("python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' " + file)
             .exit == 0;
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

}  // namespace rankine::tools
