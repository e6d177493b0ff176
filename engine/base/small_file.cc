#include "engine/base/small_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
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
  // Before it is opened: a writer would take us for a pipe's reader, and a device may do things.
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) return failed(errno);
  std::string refusal = refusal_of_file(about.st_mode);
  if (!refusal.empty()) return refused(std::move(refusal));
  const Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (file.number() < 0) return failed(errno);
  // It may be another one by now.
  if (fstat(file.number(), &about) != 0) return failed(errno);
  refusal = refusal_of_file(about.st_mode);
  if (!refusal.empty()) return refused(std::move(refusal));
  // Sizes of the kernel's files are not those of their texts: what is read is what counts.
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
      return refused("it has more than the " + std::to_string(limit) + " bytes that are allowed");
    }
  }
}

}  // namespace rankine
