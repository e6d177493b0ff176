// A program in a process of its own, and what it prints.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/api/child_process.h"

namespace rankine::testing_processes {

class Spawned {
 public:
  // `variables` are added to this process's environment: "RANKINE_ISA=portable".
  Spawned(const std::vector<std::string>& arguments, const std::vector<std::string>& variables) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    output_ = ends[0];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    std::vector<char*> argv, environment;
    for (const std::string& one : arguments) argv.push_back(const_cast<char*>(one.c_str()));
    for (const std::string& one : variables) environment.push_back(const_cast<char*>(one.c_str()));
    for (char** at = environ; *at != nullptr; ++at) environment.push_back(*at);
    argv.push_back(nullptr);
    environment.push_back(nullptr);
    if (posix_spawn(&process_, argv[0], &actions, nullptr, argv.data(), environment.data()) != 0) {
      process_ = -1;
    }
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
  }
  ~Spawned() {
    if (process_ > 0) finish();
    if (output_ >= 0) close(output_);
  }
  Spawned(Spawned&& other) noexcept
      : process_(std::exchange(other.process_, -1)), output_(std::exchange(other.output_, -1)) {}
  Spawned& operator=(Spawned&&) = delete;

  // Until a line is there, or it has closed its output.
  std::string line() {
    std::string text;
    for (char c = 0; read(output_, &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }
  void send(int signal) const { kill(process_, signal); }

  // What it has printed besides, and how it ended where that is not "exit 0". Kills what is stopped
  // or hangs.
  std::string finish() {
    if (process_ <= 0) return "cannot be started";
    const std::string end = end_of(std::exchange(process_, -1), std::chrono::seconds(240));
    std::string text;
    for (char c = 0; read(output_, &c, 1) == 1;) text += c;
    if (end != "exit 0") text += "(" + end + ")";
    return text;
  }

 private:
  pid_t process_ = -1;
  int output_ = -1;
};

}  // namespace rankine::testing_processes
