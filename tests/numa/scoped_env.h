// Sets an environment variable for the length of a scope.
#pragma once

#include <stdlib.h>

#include <optional>
#include <string>

namespace rankine {

// nullptr as value: unset. Not for use beside running threads.
class ScopedEnv {
 public:
  ScopedEnv(const char* name, const char* value) : name_(name) {
    if (const char* before = getenv(name)) before_ = before;
    apply(value);
  }
  ~ScopedEnv() { apply(before_ ? before_->c_str() : nullptr); }
  ScopedEnv(const ScopedEnv&) = delete;
  ScopedEnv& operator=(const ScopedEnv&) = delete;

 private:
  void apply(const char* value) {
    if (value != nullptr) {
      setenv(name_, value, 1);
    } else {
      unsetenv(name_);
    }
  }

  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace rankine
