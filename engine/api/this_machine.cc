#include "engine/api/this_machine.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/base/small_file.h"

namespace rankine {

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
