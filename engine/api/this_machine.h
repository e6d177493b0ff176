// Which machine this process runs on, as far as processes must agree on it to share memory.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/status.h"

namespace rankine {

struct ThisMachine {
  std::string host;
  std::string boot;  // the kernel's id of this boot
  std::uint64_t pid_namespace = 0;

  bool operator==(const ThisMachine&) const = default;
};

// Errors: system, of a machine that does not say. Throws std::bad_alloc.
Result<ThisMachine> this_machine();

}  // namespace rankine
