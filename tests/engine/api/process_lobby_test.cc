// What processes agree on as they meet, beside where their memory lies.
#include "engine/api/processes/lobby.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "engine/base/deadline.h"
#include "engine/faults/refuse_calls.h"
#include "engine/run/machine.h"
#include "tests/engine/api/process_runs.h"

// Linux before 6.10, for a process with a timer: what takes longer than until the next signal is
// undone.
namespace {
constexpr off_t kUntilTheNextSignal = off_t{3} << 20;
int interrupted = 0;
}  // namespace
extern "C" int fallocate(int file, int mode, off_t offset, off_t bytes) {
  constexpr int kPatience = 1000;
  if (bytes > kUntilTheNextSignal) {
    errno = ++interrupted < kPatience ? EINTR : EIO;
    return -1;
  }
  return static_cast<int>(syscall(SYS_fallocate, file, mode, offset, bytes));
}

namespace rankine {
namespace {

using testing_processes::end_of;
using testing_processes::fresh_name;

constexpr int kRanks = 3;
constexpr int kHave = 1, kHaveNot = 2, kFailed = 3;

// A rank's exit code: what it has been told of the barriers of all.
int meet(const std::string& name, Rank rank) {
  ProcessSettings settings;
  settings.ranks = kRanks;
  ProcessLobby lobby({.name = name,
                      .ranks = {rank},
                      .settings = settings,
                      .deadline_ns = deadline_after(now_ns(), 60'000'000'000)});
  if (const Status status = lobby.meet(); !status.ok()) return kFailed;
  const bool have = lobby.have_barriers();
  if (const Status status = lobby.be_ready(); !status.ok()) return kFailed;
  return have ? kHave : kHaveNot;
}

// The children that meet; to `without`, if it is one of them, the kernel refuses membarrier.
std::array<std::string, kRanks> ends_where(Rank without) {
  const std::string name = fresh_name();
  std::array<pid_t, kRanks> children{};
  for (Rank r = 0; r < kRanks; ++r) {
    pid_t& child = children[static_cast<std::size_t>(r)];
    child = fork();
    if (child != 0) continue;
    if (r == without && faults::refuse_calls({SYS_membarrier}) != 0) _exit(kFailed);
    _exit(meet(name, r));
  }
  std::array<std::string, kRanks> ends;
  for (std::size_t i = 0; i < children.size(); ++i) ends[i] = end_of(children[i]);
  return ends;
}

TEST(Pages, AreTakenWhileSignalsComeAllTheTime) {
  constexpr std::size_t kOffset = 4096, kBytes = (std::size_t{40} << 20) + 100;
  const int file = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  const Status status = take_pages(file, kOffset, kBytes, "forty MiB");
  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_GT(interrupted, 0);
  struct stat found {};
  ASSERT_EQ(fstat(file, &found), 0);
  constexpr std::size_t kBlock = 512;  // of st_blocks
  EXPECT_GE(static_cast<std::size_t>(found.st_blocks) * kBlock, kBytes);
  EXPECT_EQ(static_cast<std::size_t>(found.st_size), kOffset + kBytes);
  close(file);
}

// Else one would store and go on, and sleepers of another process be left asleep.
TEST(Processes, DoWithoutBarriersWhereOneOfThemHasNone) {
  if (!membarrier_available(Threads::of_all_processes)) {
    GTEST_SKIP() << "the kernel refuses membarrier between processes";
  }
  for (const std::string& end : ends_where(-1)) EXPECT_EQ(end, "exit 1");
  for (const Rank without : {0, 2}) {
    for (const std::string& end : ends_where(without)) EXPECT_EQ(end, "exit 2");
  }
}

}  // namespace
}  // namespace rankine
