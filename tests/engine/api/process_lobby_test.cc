// The facts that processes agree on as they meet, and the files and pages that they share.
#include "engine/api/processes/ranks.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/numbers.h"
#include "engine/faults/refuse_calls.h"
#include "engine/run/machine.h"
#include "tests/engine/api/child_process.h"
#include "tests/testing.h"

// --wrap replaces these calls to simulate kernel behaviour.
namespace {
constexpr off_t kUntilTheNextSignal = off_t{3} << 20;
int interruptions = 0;
bool takes_pages_at_once = false;
}  // namespace

extern "C" {
int __real_fallocate(int file, int mode, off_t offset, off_t bytes);
void* __real_mmap(void* at, std::size_t bytes, int access, int flags, int file, off_t offset);

// Simulates Linux before 6.10 for a process with a timer: a call that takes longer than the time to
// the next signal is undone.
int __wrap_fallocate(int file, int mode, off_t offset, off_t bytes) {
  constexpr int kPatience = 1000;
  if (bytes <= kUntilTheNextSignal) return __real_fallocate(file, mode, offset, bytes);
  errno = ++interruptions < kPatience ? EINTR : EIO;
  return -1;
}

// Simulates mlockall(MCL_FUTURE), which needs privileges.
void* __wrap_mmap(void* at, std::size_t bytes, int access, int flags, int file, off_t offset) {
  if (takes_pages_at_once) flags |= MAP_POPULATE;
  return __real_mmap(at, bytes, access, flags, file, offset);
}
}

namespace rankine {
namespace {

using testing_processes::fresh_name;

constexpr int kRanks = 3;
constexpr int kHave = 1, kHaveNot = 2, kFailed = 3, kShare = 4;

// Meets the other ranks; the returned exit code says whether all have barriers and whether cores
// are shared.
int meet(const std::string& name, Rank rank, bool shares_cores) {
  ProcessSettings settings;
  settings.ranks = kRanks;
  ProcessLobby lobby({.name = name,
                      .ranks = {rank},
                      .settings = settings,
                      .deadline_ns = deadline_after(now_ns(), 60'000'000'000)});
  if (const Status status = lobby.meet(); !status.ok()) return kFailed;
  const bool have = lobby.have_barriers();
  if (shares_cores) lobby.share_cores();
  if (const Status status = lobby.be_ready(); !status.ok()) return kFailed;
  return (have ? kHave : kHaveNot) + (lobby.cores_are_shared() ? kShare : 0);
}

// Forks the children that meet; returns their ends. The kernel refuses membarrier to rank
// `without`, and rank `sharing` reports shared cores.
std::vector<std::string> ends_of_ranks(Rank without, Rank sharing = -1) {
  const std::string name = fresh_name();
  std::vector<ChildProcess> children;
  for (Rank r = 0; r < kRanks; ++r) {
    children.emplace_back([&] {
      if (r == without && faults::refuse_calls({SYS_membarrier}) != 0) return kFailed;
      return meet(name, r, r == sharing);
    });
  }
  std::vector<std::string> ends;
  for (ChildProcess& child : children) ends.push_back(describe_end(child.wait()));
  return ends;
}

class ASharedFile {
 public:
  explicit ASharedFile(off_t bytes = 0) { EXPECT_EQ(ftruncate(file_, bytes), 0); }
  ~ASharedFile() { close(file_); }
  int number() const { return file_; }
  std::size_t bytes() const { return static_cast<std::size_t>(state().st_size); }
  std::size_t taken() const {
    constexpr std::size_t kBlock = 512;  // unit of st_blocks
    return static_cast<std::size_t>(state().st_blocks) * kBlock;
  }

 private:
  struct stat state() const {
    struct stat found {};
    EXPECT_EQ(fstat(file_, &found), 0);
    return found;
  }
  int file_ = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
};

// KeptFile must notice that the program has opened another file under the same number.
TEST(KeptFiles, AreNotTakenForWhatAProgramOpensUnderTheirNumber) {
  constexpr std::size_t kBytes = std::size_t{1} << 16;
  KeptFile kept(open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  const int number = kept.number();
  ASSERT_GT(number, STDERR_FILENO);
  ASSERT_EQ(ftruncate(number, kBytes), 0);
  void* const at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, number, 0);
  ASSERT_NE(at, MAP_FAILED);
  auto* const bytes = static_cast<std::byte*>(at);
  bytes[0] = std::byte{1};
  const ASharedFile own(5);
  ASSERT_EQ(dup2(own.number(), number), number);
  EXPECT_TRUE(kept.is_open());
  EXPECT_EQ(kept.number(), -1);
  EXPECT_TRUE(take_pages(kept, bytes, 0, kBytes, "pages").ok());
  give_pages_back(kept, bytes, 0, kBytes);
  EXPECT_EQ(bytes[0], std::byte{0});
  kept.close();
  EXPECT_EQ(fcntl(number, F_GETFD), 0);  // the program's file stays open
  EXPECT_EQ(own.bytes(), 5u);
  close(number);
  munmap(at, kBytes);
}

TEST(KnownProcesses, EndWithTheirProcess) {
  const KnownProcess self = KnownProcess::this_one();
  EXPECT_TRUE(self.is_possible());
  EXPECT_GT(self.started, 0);
  EXPECT_FALSE(self.has_ended());
  const KnownProcess earlier{self.id, self.started - 1};  // an earlier process with the same number
  EXPECT_TRUE(earlier.has_ended());
  EXPECT_FALSE((KnownProcess{16843009, 1}).is_possible());
  ChildProcess child([] { return 0; });
  siginfo_t how{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.id()), &how, WEXITED | WNOWAIT), 0);
  const KnownProcess zombie{child.id(), self.started};
  EXPECT_TRUE(zombie.has_ended());
  EXPECT_EQ(child.wait(), 0);
  EXPECT_TRUE(zombie.has_ended());
}

// The reserved addresses must not take pages at once; otherwise they would fill /dev/shm.
TEST(Pages, AreTakenWhenNeededWhereAProgramLocksWhatItMaps) {
  constexpr off_t kBytes = off_t{1} << 20;
  const ASharedFile file(kBytes);
  ReservedBases bases;
  const auto reserved = bases.reserve(1);
  ASSERT_TRUE(reserved.any());
  takes_pages_at_once = true;
  std::byte* const base = bases.map(reserved, 1, file.number());
  takes_pages_at_once = false;
  ASSERT_NE(base, nullptr);
  EXPECT_EQ(file.taken(), 0u);
  base[kBytes - 1] = std::byte{1};
  EXPECT_GT(file.taken(), 0u);
  EXPECT_EQ(munmap(base, kProcessSpan), 0);
}

TEST(Pages, AreTakenWhileSignalsComeAllTheTime) {
  constexpr std::size_t kOffset = 4096, kBytes = (std::size_t{40} << 20) + 100;
  const ASharedFile file;
  const KeptFile kept(dup(file.number()));
  const Status status = take_pages(kept, nullptr, kOffset, kBytes, "forty MiB");
  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_GT(interruptions, 0);
  EXPECT_GE(file.taken(), kBytes);
  EXPECT_EQ(file.bytes(), kOffset + kBytes);
}

// If one process sees shared cores, all must know it; otherwise the processes would plan different
// calls.
TEST(Processes, ShareCoresWhereOneOfThemSeesIt) {
  const int barriers = membarrier_available(Threads::of_all_processes) ? kHave : kHaveNot;
  for (const std::string& end : ends_of_ranks(-1))
    EXPECT_EQ(end, "exit " + std::to_string(barriers));
  for (const Rank sharing : {0, 1, 2}) {
    for (const std::string& end : ends_of_ranks(-1, sharing)) {
      EXPECT_EQ(end, "exit " + std::to_string(barriers + kShare));
    }
  }
}

// If one process lacks barriers, none may use them; otherwise a process could store and go on while
// a sleeper in another process never wakes.
TEST(Processes, DoWithoutBarriersWhereOneOfThemHasNone) {
  if (!membarrier_available(Threads::of_all_processes)) {
    GTEST_SKIP() << "the kernel refuses membarrier between processes";
  }
  for (const std::string& end : ends_of_ranks(-1)) EXPECT_EQ(end, "exit 1");
  for (const Rank without : {0, 2}) {
    for (const std::string& end : ends_of_ranks(without)) EXPECT_EQ(end, "exit 2");
  }
}

}  // namespace
}  // namespace rankine
