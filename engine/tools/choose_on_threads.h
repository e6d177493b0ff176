// What calls on this machine's threads get that name no algorithm, and why.
#pragma once

#include <cstddef>

#include "algorithms/schedule/collective.h"
#include "engine/base/status.h"
#include "engine/tools/console.h"

namespace rankine::tools {

struct ThreadsQuestion {
  Collective collective;
  int ranks;
  std::size_t bytes;
  bool explain, json;
};

Result<Exit> choose_on_threads(const ThreadsQuestion& a, Console& console);

}  // namespace rankine::tools
