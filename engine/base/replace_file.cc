#include "engine/base/replace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "engine/base/whole_file.h"

namespace rankine {
namespace {

Status cannot(const std::string& path, const std::string& why) {
  return {Code::system, "'" + path + "' cannot be written: " + why};
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

// Errors are errno's values.
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

}  // namespace rankine
