#include "engine/api/processes/identity.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>

#include "engine/base/files.h"
#include "engine/run/machine.h"

namespace rankine {
namespace {

constexpr std::string_view kPrefix = "rankine.";
constexpr off_t kRemoving = kSeats;

struct flock byte_lock(off_t first, off_t bytes, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = first;
  lock.l_len = bytes;
  return lock;
}

}  // namespace

std::string shared_path(const std::string& name) {
  return std::string(kSharedFolder) + "/" + std::string(kPrefix) + name;
}

int open_shared(const char* path, int flags, mode_t mode) noexcept {
  const int file = open(path, flags | O_CLOEXEC, mode);
  if (file < 0 || file > STDERR_FILENO) return file;
  const int apart = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  close(file);
  errno = error;
  return apart;
}

KeptFile::KeptFile(int file) noexcept : file_(file) {
  constexpr int kHigh = 1000;  // programs close and open low numbers
  if (file_ < 0) return;
  if (const int high = fcntl(file_, F_DUPFD_CLOEXEC, kHigh); high >= 0) {
    ::close(file_);
    file_ = high;
  }
  struct stat found {};
  if (fstat(file_, &found) != 0) return;
  device_ = found.st_dev;
  inode_ = found.st_ino;
}

int KeptFile::number() const noexcept {
  struct stat found {};
  const bool is_same =
      file_ >= 0 && fstat(file_, &found) == 0 && found.st_dev == device_ && found.st_ino == inode_;
  return is_same ? file_ : -1;
}

void KeptFile::close() noexcept {
  if (const int file = number(); file >= 0) ::close(file);
  file_ = -1;
}

namespace {

// The start time of a process from /proc; -1: unknown, 0: it has ended.
std::int64_t start_of(std::int32_t process) noexcept {
  char text[1024];
  std::snprintf(text, sizeof(text), "/proc/%d/stat", process);
  const int file = open_shared(text, O_RDONLY);
  if (file < 0) return -1;
  const ssize_t length = read(file, text, sizeof(text));
  close(file);
  // The format is "number (name) state parent ..."; the name may contain blanks and brackets.
  const std::string_view all(text, length > 0 ? static_cast<std::size_t>(length) : 0);
  const std::size_t name_end = all.rfind(')');
  if (name_end == std::string_view::npos) return -1;
  constexpr int kState = 3, kThreads = 20, kStart = 22;  // as proc(5) counts
  char state = 0;
  std::int64_t threads = 0, start = -1;
  std::size_t at = name_end + 1;  // the blank before a field
  for (int field = kState; field <= kStart && at < all.size(); ++field) {
    const char* const begin = all.data() + at + 1;
    const char* const end = all.data() + all.size();
    if (field == kState) state = begin < end ? *begin : '\0';
    if (field == kThreads) std::from_chars(begin, end, threads);
    if (field == kStart) std::from_chars(begin, end, start);
    at = all.find(' ', at + 1);
  }
  // In a living process the first thread may have ended.
  return (state == 'Z' || state == 'X') && threads <= 1 ? 0 : start;
}

}  // namespace

KnownProcess KnownProcess::this_one() noexcept {
  const std::int32_t self = getpid();
  return {self, start_of(self)};
}

bool KnownProcess::is_possible() const noexcept {
  constexpr std::int32_t kMostProcessId = 1 << 22;  // the kernel's limit
  return id > 0 && id <= kMostProcessId && started >= -1;
}

bool KnownProcess::has_ended() const noexcept {
  const std::int64_t now = start_of(id);
  // no such process; otherwise it lives or is hidden
  if (now < 0) return kill(id, 0) != 0 && errno == ESRCH;
  return now == 0 || (started > 0 && now != started);
}

bool try_lock(int file, off_t byte) noexcept {
  struct flock lock = byte_lock(byte, 1, F_WRLCK);
  return fcntl(file, F_OFD_SETLK, &lock) == 0;
}

bool is_locked(int file, off_t first, off_t bytes) noexcept {
  struct flock lock = byte_lock(first, bytes, F_WRLCK);
  return fcntl(file, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

bool is_named(int file, const std::string& path) noexcept {
  struct stat here {
  }, there{};
  return fstat(file, &here) == 0 && lstat(path.c_str(), &there) == 0 &&
         here.st_ino == there.st_ino && here.st_dev == there.st_dev;
}

void remove_name(int file, const std::string& path) noexcept {
  // Only the process with this lock checks and removes the name, so it never removes the name of a
  // later file. If a process is stopped with the lock, do not wait for it: another process removes
  // the file later.
  constexpr std::int64_t kPatienceNs = 100'000'000;
  const std::int64_t until = now_ns() + kPatienceNs;
  while (!try_lock(file, kRemoving)) {
    if (now_ns() >= until || !is_named(file, path)) return;
    sleep_ns(50'000);
  }
  if (is_named(file, path)) unlink(path.c_str());
  struct flock lock = byte_lock(kRemoving, 1, F_UNLCK);
  fcntl(file, F_OFD_SETLK, &lock);
}

namespace {

bool is_communicators_own(int file) noexcept {
  struct stat found {};
  char magic[sizeof(kSharedMagic)] = {};
  return fstat(file, &found) == 0 && S_ISREG(found.st_mode) && found.st_uid == geteuid() &&
         pread(file, magic, sizeof(magic), 0) == static_cast<ssize_t>(sizeof(magic)) &&
         std::memcmp(magic, kSharedMagic, sizeof(magic)) == 0;
}

}  // namespace

void remove_orphans() noexcept try {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(kSharedFolder), closedir);
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder.get())) {
    if (!std::string_view(entry->d_name).starts_with(kPrefix)) continue;
    const std::string path = std::string(kSharedFolder) + "/" + entry->d_name;
    const int file = open_shared(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) continue;
    if (is_communicators_own(file) && !anybody_in(file)) remove_name(file, path);
    close(file);
  }
} catch (const std::bad_alloc&) {  // a later call removes them
}

std::string difference(const ProcessSettings& one, const std::string& who,
                       const ProcessSettings& other, const std::string& whose) {
  const auto say = [&](const char* what, const std::string& a, const std::string& b) {
    return std::string(what) + " is " + a + " of " + who + " and " + b + " of " + whose;
  };
  const auto say_hash = [&](const char* what, const char* where) {
    return std::string(what) + " of " + who + " differ from those of " + whose + ": " + where;
  };
  const auto text = [](const char* value) { return std::string(value); };
  if (std::strcmp(one.host, other.host) != 0) return say("host", one.host, other.host);
  if (std::strcmp(one.boot, other.boot) != 0) return say("boot id", one.boot, other.boot);
  if (one.pid_namespace != other.pid_namespace) {
    return say("pid namespace", std::to_string(one.pid_namespace),
               std::to_string(other.pid_namespace));
  }
  if (std::strcmp(one.version, other.version) != 0) {
    return say("version", text(one.version), text(other.version));
  }
  if (one.ranks != other.ranks) {
    return say("ranks", std::to_string(one.ranks), std::to_string(other.ranks));
  }
  if (std::strcmp(one.isa, other.isa) != 0) {
    return say("instruction set", text(one.isa), text(other.isa));
  }
  if (one.environment != other.environment) {
    return say_hash("variables", "RANKINE_ALGO, RANKINE_NETWORK or RANKINE_TRANSPORT");
  }
  if (one.tuning != other.tuning) return say_hash("choices", "the tuning table or tuned");
  if (one.costs != other.costs) return say_hash("costs", "the tuning table's or those given");
  return say_hash("options", "levels, network, order or plan_bytes");
}

Result<ThisMachine> this_machine() {
  ThisMachine out;
  const auto refused = [](const char* what, const std::string& why) {
    return make_error(Code::system, [&] { return std::string(what) + ": " + why; });
  };
  constexpr const char* kBoot = "/proc/sys/kernel/random/boot_id";
  constexpr const char* kNamespace = "/proc/self/ns/pid";
  constexpr std::size_t kLongest = 40;
  SmallFile boot = read_small_file(kBoot, kLongest);
  if (!boot.ok()) return refused(kBoot, boot.error);
  if (!boot.text.empty() && boot.text.back() == '\n') boot.text.pop_back();
  out.boot = boot.text;
  struct stat entry {};
  if (stat(kNamespace, &entry) != 0) return refused(kNamespace, std::strerror(errno));
  out.pid_namespace = entry.st_ino;
  char host[65] = {};
  if (gethostname(host, sizeof(host) - 1) != 0) return refused("gethostname", std::strerror(errno));
  out.host = host;
  return out;
}

}  // namespace rankine
