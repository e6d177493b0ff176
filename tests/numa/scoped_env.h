// Sets an environment variable for the length of a scope.
#ifndef RANKINE_TESTS_NUMA_SCOPED_ENV_H_
#define RANKINE_TESTS_NUMA_SCOPED_ENV_H_

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

#endif  // RANKINE_TESTS_NUMA_SCOPED_ENV_H_
