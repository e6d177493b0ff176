// A part of a test in a process of its own: for what ends a process, or changes it for good.
#pragma once

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <thread>

namespace rankine::testing_processes {

#if defined(__SANITIZE_THREAD__)
constexpr bool kChildrenMayHaveThreads = false;  // of a process that has threads
#else
constexpr bool kChildrenMayHaveThreads = true;
#endif

// This process is one: said there by who has forked it.
inline bool is_child = false;

// LeakSanitizer asks this where a process ends by exit(). In a child, what the parent's other
// threads held on their stacks and what is left alone there looks lost.
extern "C" [[gnu::used]] inline int __lsan_is_turned_off() { return is_child ? 1 : 0; }

// How a child ended: "exit 7", "signal 6", or "hung" after so long, and then it is killed.
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

// f in a forked child; what f returns is its exit code. A process without other threads may call
// it under every sanitizer.
inline std::string run_in_child(const std::function<int()>& f) {
  const pid_t child = fork();
  if (child == 0) {
    is_child = true;
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // when the calling thread ends, which waits for it
    _exit(f());
  }
  return end_of(child);
}

}  // namespace rankine::testing_processes
