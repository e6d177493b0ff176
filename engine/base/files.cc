#include "engine/base/files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

namespace rankine {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  const int number_;
};

SmallFile failed(int error) {
  const bool is_missing = error == ENOENT || error == ENOTDIR;
  return {.text = {}, .error = std::strerror(error), .is_missing = is_missing};
}

SmallFile refused(std::string why) { return {.text = {}, .error = std::move(why)}; }

}  // namespace

std::string refusal_of_file(unsigned mode) {
  const char* kind = S_ISREG(mode)    ? nullptr
                     : S_ISDIR(mode)  ? "directory"
                     : S_ISFIFO(mode) ? "pipe"
                     : S_ISCHR(mode)  ? "character device"
                     : S_ISBLK(mode)  ? "block device"
                     : S_ISSOCK(mode) ? "socket"
                     : S_ISLNK(mode)  ? "symbolic link"
                                      : "thing unknown";
  return kind == nullptr ? "" : std::string("it is a ") + kind + ", and no regular file";
}

SmallFile read_small_file(const std::string& path, std::size_t limit) {
  // Check before opening: a writer would take us for a pipe's reader, and opening a device may act.
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) return failed(errno);
  std::string refusal = refusal_of_file(about.st_mode);
  if (!refusal.empty()) return refused(std::move(refusal));
  const Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (file.number() < 0) return failed(errno);
  // The path may name another file by now.
  if (fstat(file.number(), &about) != 0) return failed(errno);
  refusal = refusal_of_file(about.st_mode);
  if (!refusal.empty()) return refused(std::move(refusal));
  // Sizes of the kernel's files differ from their text lengths, so count the bytes read.
  SmallFile out;
  for (;;) {
    const std::size_t had = out.text.size();
    constexpr std::size_t kStep = 64 * 1024;
    out.text.resize(std::min(had + kStep, limit + 1));
    const ssize_t got = read(file.number(), out.text.data() + had, out.text.size() - had);
    const int error = errno;
    out.text.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && error == EINTR) continue;
    if (got < 0) return failed(error);
    if (got == 0) return out;
    if (out.text.size() > limit) {
      return refused("it has more than " + std::to_string(limit) + " bytes, the allowed size");
    }
  }
}

namespace {

// A name in the same folder, unique in this process. It is short, so that it is allowed if `path`
// is.
std::string neighbour_of(const std::string& path) {
  static std::atomic<unsigned> last{0};
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  const unsigned number = last.fetch_add(1, std::memory_order_relaxed);  // pairs with nothing
  return folder + ".rankine." + std::to_string(getpid()) + "." + std::to_string(number);
}

}  // namespace

int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = write(descriptor, text.data(), text.size());
    if (put >= 0) {
      text.remove_prefix(static_cast<std::size_t>(put));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

WholeFile::WholeFile(const std::string& path) : path_(path) {
  struct stat about {};
  if (lstat(path_.c_str(), &about) == 0) {
    error_ = refusal_of_file(about.st_mode);
    if (!error_.empty()) return;
  }
  // A process that died may have left a file with one of our names.
  constexpr int kNames = 100;
  for (int i = 0; i < kNames && file_ < 0; ++i) {
    beside_ = neighbour_of(path_);
    file_ = open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file_ < 0 && errno != EEXIST) break;
  }
  if (file_ < 0) fail(errno);
}

WholeFile::~WholeFile() {
  if (file_ >= 0) close(file_);
  if (!beside_.empty()) unlink(beside_.c_str());
}

void WholeFile::fail(int error) {
  if (error_.empty()) error_ = std::strerror(error);
  if (file_ < 0) beside_.clear();
}

void WholeFile::permit(unsigned permissions) {
  if (error_.empty() && fchmod(file_, permissions) != 0) fail(errno);
}

void WholeFile::append(std::string_view text) {
  if (!error_.empty()) return;
  if (const int error = write_all(file_, text); error != 0) fail(error);
}

std::string WholeFile::finish() {
  if (!error_.empty()) return error_;
  const int closed = close(file_);
  file_ = -1;
  if (closed != 0 && errno != EINTR) {
    error_ = std::strerror(errno);
  } else if (std::rename(beside_.c_str(), path_.c_str()) != 0) {
    error_ = std::strerror(errno);
  } else {
    beside_.clear();
  }
  return error_;
}

namespace {

Status cannot(const std::string& path, const std::string& why) {
  return {Code::system, "'" + path + "' cannot be written: " + why};
}

// Follows symbolic links to the end; the last name need not exist.
std::string resolved(const std::string& path) {
  namespace fs = std::filesystem;
  // the kernel's limit; a cycle of links remains as it is, and fails later
  constexpr int kMostLinks = 40;
  std::error_code error;
  fs::path at(path);
  for (int i = 0; i < kMostLinks; ++i) {
    const fs::path next = fs::read_symlink(at, error);
    if (error) break;
    at = next.is_absolute() ? next : at.parent_path() / next;
  }
  return at.string();
}

// Errors are errno's values.
int write_in_place(const std::string& path, std::string_view text) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) return errno;
  const int error = write_all(descriptor, text);
  return close(descriptor) != 0 && error == 0 ? errno : error;
}

// The file now at a path.
struct Target {
  std::string path;
  bool there = false, replaceable = true;
  mode_t permissions = 0;
  int error = 0;
};

Target target_of(const std::string& path) {
  Target target{.path = resolved(path)};
  if (path.empty()) target.error = ENOENT;  // a file could lie beside it
  struct stat found {};
  if (stat(target.path.c_str(), &found) != 0) {
    if (errno != ENOENT) target.error = errno;
    return target;
  }
  target.there = true;
  target.replaceable = S_ISREG(found.st_mode);
  target.permissions = found.st_mode & 07777;
  if (S_ISDIR(found.st_mode)) {
    target.error = EISDIR;
  } else if (access(target.path.c_str(), W_OK) != 0) {
    target.error = errno;
  }
  return target;
}

}  // namespace

Status replace_file(const std::string& path, std::string_view text) {
  const Target target = target_of(path);
  if (target.error != 0) return cannot(path, std::strerror(target.error));
  if (!target.replaceable) {
    const int error = write_in_place(target.path, text);
    return error == 0 ? Status() : cannot(path, std::strerror(error));
  }
  WholeFile file(target.path);
  if (target.there) file.permit(target.permissions);
  file.append(text);
  const std::string why = file.finish();
  return why.empty() ? Status() : cannot(path, why);
}

Status check_replaceable(const std::string& path) {
  const Target target = target_of(path);
  if (target.error != 0) return cannot(path, std::strerror(target.error));
  if (!target.replaceable) return {};
  const WholeFile file(target.path);
  return file.error().empty() ? Status() : cannot(path, file.error());
}

bool is_privileged() noexcept {
#if defined(__linux__)
  return getauxval(AT_SECURE) != 0;
#else
  return false;  // the page in a browser
#endif
}

const char* environment_variable(const char* name) noexcept { return secure_getenv(name); }

std::vector<std::string> variables_with_prefix(std::string_view prefix) {
  std::vector<std::string> names;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view entry = *at;
    if (entry.starts_with(prefix)) names.emplace_back(entry.substr(0, entry.find('=')));
  }
  return names;
}

}  // namespace rankine
