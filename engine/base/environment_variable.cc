#include "engine/base/environment_variable.h"

#include <stdlib.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif

extern char** environ;  // POSIX requires the program to declare it

namespace rankine {

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
