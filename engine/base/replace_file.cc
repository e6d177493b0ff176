#include "engine/base/replace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace rankine {
namespace {

Status cannot(const std::string& path, int error) {
  return {Code::system, "'" + path + "' cannot be written: " + std::strerror(error)};
}

// Where the links end; the last name need not be there.
std::string resolved(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr int kMostLinks = 40;  // as the kernel's own limit; a circle stays as it is, an error
  std::error_code error;
  fs::path at(path);
  for (int i = 0; i < kMostLinks; ++i) {
    const fs::path next = fs::read_symlink(at, error);
    if (error) break;
    at = next.is_absolute() ? next : at.parent_path() / next;
  }
  return at.string();
}

// Closes and, unless it has got its name, removes.
class NewFile {
 public:
  // Errors are errno's values.
  static int make(const std::string& beside, NewFile& into) {
    static std::atomic<unsigned> made{0};
    for (;;) {
      into.name_ = beside + "." + std::to_string(getpid()) + "." +
                   std::to_string(made.fetch_add(1, std::memory_order_relaxed)) + ".new";
      constexpr mode_t kAsUmaskAllows = 0666;
      into.descriptor_ =
          open(into.name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kAsUmaskAllows);
      if (into.descriptor_ >= 0) return 0;
      if (const int error = errno; error != EEXIST) {
        into.name_.clear();
        return error;
      }
    }
  }
  NewFile() = default;
  ~NewFile() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!name_.empty()) unlink(name_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  int descriptor() const { return descriptor_; }
  int rename_to(const std::string& path) {
    const int closed = close(descriptor_);  // some file systems tell of a full disk only here
    descriptor_ = -1;
    if (closed != 0) return errno;
    if (rename(name_.c_str(), path.c_str()) != 0) return errno;
    name_.clear();
    return 0;
  }

 private:
  int descriptor_ = -1;
  std::string name_;  // empty: nothing to remove
};

int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

int write_in_place(const std::string& path, std::string_view text) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) return errno;
  const int error = write_all(descriptor, text);
  return close(descriptor) != 0 && error == 0 ? errno : error;
}

// What stands there now.
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

int replace(const Target& target, std::string_view text) {
  if (target.error != 0) return target.error;
  if (!target.replaceable) return write_in_place(target.path, text);
  NewFile file;
  if (const int error = NewFile::make(target.path, file); error != 0) return error;
  if (target.there && fchmod(file.descriptor(), target.permissions) != 0) return errno;
  if (const int error = write_all(file.descriptor(), text); error != 0) return error;
  return file.rename_to(target.path);
}

}  // namespace

Status replace_file(const std::string& path, std::string_view text) {
  const int error = replace(target_of(path), text);
  return error == 0 ? Status() : cannot(path, error);
}

Status check_replaceable(const std::string& path) {
  const Target target = target_of(path);
  if (target.error != 0) return cannot(path, target.error);
  if (!target.replaceable) return {};
  NewFile file;
  const int error = NewFile::make(target.path, file);
  return error == 0 ? Status() : cannot(path, error);
}

}  // namespace rankine
