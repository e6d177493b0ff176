#include "engine/base/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "engine/base/small_file.h"

namespace rankine {
namespace {

// A name in the same folder that no other file of this process has. Short, so that whatever name
// is allowed for the file, this one is.
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
  // A process that died may have left one of our names behind.
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

}  // namespace rankine
