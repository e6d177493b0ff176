// Helpers that run a part of a test in a separate process: a forked child, or a spawned program
// such as process_rank.cc. Tests use them for code that ends or permanently changes its process.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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

// Returns how a child ended: "exit 7", "signal 6", or "hung" if it did not end within `patience`;
// then the child is killed.
inline std::string end_of(pid_t child, std::chrono::seconds patience = std::chrono::seconds(60)) {
  const auto until = std::chrono::steady_clock::now() + patience;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > until) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return "hung";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return WIFEXITED(status) ? "exit " + std::to_string(WEXITSTATUS(status))
                           : "signal " + std::to_string(WTERMSIG(status));
}

// Runs f in a forked child and returns end_of(child); the result of f is the exit code. A process
// without other threads may call it under every sanitizer.
inline std::string run_in_child(const std::function<int()>& f) {
  const pid_t child = fork();
  if (child == 0) {
    is_child = true;
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // when the calling (and waiting) thread ends
    _exit(f());
  }
  return end_of(child);
}

// A spawned program, with its standard output.

class Spawned {
 public:
  // `variables`, such as "RANKINE_ISA=portable", are added to this process's environment.
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

  // Reads one line; blocks until the program prints a newline or closes its output.
  std::string line() {
    std::string text;
    for (char c = 0; read(output_, &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }
  void send(int signal) const { kill(process_, signal); }

  // Returns the rest of the output, and the end of the program if it is not "exit 0". A program
  // that is stopped or hangs is killed.
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
