// Processes to which the machine refuses what they share: a full /dev/shm, limits of address space,
// of files and of descriptors; and whose program closes descriptors that it has not opened.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/processes/name.h"
#include "engine/faults/plays.h"
#include "engine/faults/scene.h"

namespace rankine::faults {
namespace {

// A /dev/shm of this process and of those that it starts, as large as containers have it, and full
// but for so many bytes until empty().
class SmallSharedFolder {
 public:
  static constexpr std::size_t kBytes = std::size_t{64} << 20;

  explicit SmallSharedFolder(std::size_t room) {
    const std::string size = "size=" + std::to_string(kBytes) + ",mode=1777";
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", kSharedFolder, "tmpfs", 0, size.c_str()) != 0) {
      why_ = std::string("a mount namespace: ") + std::strerror(errno);
      return;
    }
    const int file = open(path_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0 || fallocate(file, 0, 0, static_cast<off_t>(kBytes - room)) != 0) {
      why_ = path_ + ": " + std::strerror(errno);
    }
    if (file >= 0) close(file);
  }
  const std::string& why_not() const { return why_; }
  // By any of its processes, any number of times. Another one may be at it: the file's name goes at
  // once, its pages one by one.
  void empty() const {
    unlink(path_.c_str());
    wait_for([] {
      struct statvfs room {};
      return statvfs(kSharedFolder, &room) != 0 || room.f_bfree * room.f_bsize >= kBytes / 2;
    });
  }

 private:
  const std::string path_ = std::string(kSharedFolder) + "/full";
  std::string why_;
};

// While alive, this process has no more of that.
class Limit {
 public:
  Limit(__rlimit_resource_t what, rlim_t most) : what_(what) {
    getrlimit(what_, &before_);
    rlimit limit = before_;
    limit.rlim_cur = std::min(most, before_.rlim_max);
    setrlimit(what_, &limit);
  }
  ~Limit() { setrlimit(what_, &before_); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

 private:
  const __rlimit_resource_t what_;
  rlimit before_{};
};

rlim_t address_space_in_use() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

// That are open.
std::vector<int> descriptors() {
  std::vector<int> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    all.push_back(std::stoi(entry.path().filename().string()));
  }
  // But for the folder's, which is closed again.
  std::erase_if(all, [](int one) { return fcntl(one, F_GETFD) < 0; });
  return all;
}

// A limit of so many leaves room for one more than there are, at least.
rlim_t descriptors_in_use() {
  const std::vector<int> all = descriptors();
  return static_cast<rlim_t>(*std::max_element(all.begin(), all.end())) + 1;
}

// A program closes what it does not know, and opens a file of its own under the same numbers: calls
// go on, and the file stays as it is.
void play_closed(const FaultCase& test, CollectiveCase call, bool of_all, Rank victim,
                 Tally& tally) {
  constexpr std::string_view kText = "mine";
  const int own = memfd_create("own", MFD_CLOEXEC);
  if (own < 0 || pwrite(own, kText.data(), kText.size(), 0) != ssize_t{kText.size()}) {
    return Judge(test, {}, tally).excuse("no file of the program's own can be made");
  }
  std::vector<int> before;  // they meet, of each process
  const auto close_what_is_new = [&](Rank rank) {
    if (!of_all && rank != victim) return;
    for (const int one : descriptors()) {
      if (std::find(before.begin(), before.end(), one) == before.end()) dup2(own, one);
    }
  };
  Scene scene(test, {}, tally,
              {.before_they_meet = [&](Rank) { before = descriptors(); },
               .after_they_meet = close_what_is_new});
  scene.run([&](Seat& seat) {
    for (const std::size_t count : {1u, 5'000u, 100'000u}) {
      if (test.collective != Collective::barrier) call.count = count;
      if (!seat.call(call)) return;
    }
    struct stat now {};
    if (fstat(own, &now) != 0 || now.st_size != off_t{kText.size()}) {
      scene.judge().blame_wrong("the program's own file has another length");
    }
  });
  close(own);
}

}  // namespace

void play_no_room(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  CollectiveCase call = good_call(test, dice);
  // From nothing at all to enough for most calls.
  constexpr std::size_t kPage = 4096;
  const std::size_t room =
      kPage * static_cast<std::size_t>(dice.below(5)) * (std::size_t{1} << dice.below(11));
  const SmallSharedFolder folder(room);
  if (!folder.why_not().empty()) return Judge(test, {}, tally).excuse(folder.why_not());
  Scene* scene_of_all = nullptr;
  Scene scene(test, {.at_once = true, .documented = {Code::out_of_memory}}, tally,
              {.before_they_meet = [&](Rank) { scene_of_all->judge().mark_fault(); },
               .in_the_end = [&] { folder.empty(); }});
  scene_of_all = &scene;
  scene.run([&](Seat& seat) {
    for (const std::size_t count : {1u, 130u, 5'000u, 100'000u}) {
      if (test.collective != Collective::barrier) call.count = count;
      scene.judge().mark_fault();
      if (!seat.call(call)) return;
    }
  });
}

void play_limits(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  const CollectiveCase call = good_call(test, dice);
  enum { address_space, file_size, few_descriptors, closed_descriptors };
  const int kind = dice.below(4);
  const bool of_all = dice.one_in(2);
  const Rank victim = dice.below(test.ranks);
  const int more = dice.below(test.ranks + 4);
  if (kind == closed_descriptors) return play_closed(test, call, of_all, victim, tally);
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  if (kind == address_space) {
    return Judge(test, {}, tally).excuse("the sanitizer needs more address space itself");
  }
#endif
  Promise promise{.at_once = true, .documented = {Code::system, Code::out_of_memory}};
  // Who cannot open the file has no way to tell the others.
  if (kind == few_descriptors) {
    promise = {.timeout = kShort,
               .documented = {Code::system, Code::out_of_memory, Code::timeout},
               .same_text = false};
  }
  std::optional<Limit> limit;  // of this process
  Scene* scene_of_all = nullptr;
  const auto begin = [&](Rank rank) {
    scene_of_all->judge().mark_fault();
    if (!of_all && rank != victim) return;
    constexpr rlim_t kSpaces[] = {rlim_t{64} << 20, rlim_t{1} << 30, rlim_t{20} << 30};
    if (kind == address_space) {
      limit.emplace(RLIMIT_AS, address_space_in_use() + kSpaces[more % 3]);
    } else if (kind == file_size) {
      limit.emplace(RLIMIT_FSIZE, more % 2 == 0 ? 0 : rlim_t{1} << 20);
    } else {
      limit.emplace(RLIMIT_NOFILE, descriptors_in_use() + static_cast<rlim_t>(more));
    }
  };
  Scene scene(test, promise, tally,
              {.before_they_meet = begin, .in_the_end = [&] { limit.reset(); }});
  scene_of_all = &scene;
  scene.run([&](Seat& seat) {
    for (int i = 0; i < 3; ++i) {
      if (!seat.call(call)) return;
    }
  });
}

}  // namespace rankine::faults
