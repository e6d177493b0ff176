#include "engine/tools/process_copies.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <random>
#include <utility>

#include "engine/run/machine.h"

namespace rankine::tools {
namespace {

// The first one speaks for all; and where it is killed, nobody is left who would be asked.
void begin_copy(pid_t first) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != first) _exit(1);  // it was killed before that
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
}

}  // namespace

Result<ProcessCopies> ProcessCopies::make(int ranks) {
  ProcessCopies copies;
  copies.number_ = std::random_device()();
  const pid_t first = getpid();
  for (int r = 1; r < ranks; ++r) {
    const pid_t child = fork();
    if (child < 0) {
      const int error = errno;
      for (const pid_t one : copies.others_) kill(one, SIGKILL);
      return Status(Code::system, fmt::format("a process for rank {}: {}", r, strerror(error)));
    }
    if (child == 0) {
      begin_copy(first);
      copies.rank_ = r;
      copies.others_.clear();
      break;
    }
    copies.others_.push_back(child);
  }
  return copies;
}

ProcessCopies::ProcessCopies(ProcessCopies&& other) noexcept
    : rank_(std::exchange(other.rank_, 0)),
      number_(other.number_),
      others_(std::exchange(other.others_, {})) {}

ProcessCopies::~ProcessCopies() {
  if (rank_ > 0) _exit(0);
  constexpr std::int64_t kPatienceNs = 2'000'000'000;
  const std::int64_t until = now_ns() + kPatienceNs;
  for (const pid_t one : others_) {
    int end = 0;
    while (waitpid(one, &end, WNOHANG) == 0) {
      if (now_ns() >= until) kill(one, SIGKILL);
      sleep_ns(500'000);
    }
  }
}

std::string ProcessCopies::name(int number) const {
  return fmt::format("tool.{}.{}", number_, number);
}

}  // namespace rankine::tools
