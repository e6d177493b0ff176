// Ranks for what measures this machine or brings its own clock: not on the network that
// RANKINE_NETWORK may name for programs, so that nobody takes model time for time. On one that
// `options` names, where whoever measures says so.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>

#include "engine/api/team.h"
#include "engine/base/environment_variable.h"

namespace rankine::tools {

inline Result<std::unique_ptr<Team>> machine_team(const TeamOptions& options) {
  const char* const network = environment_variable("RANKINE_NETWORK");
  if (network != nullptr && options.network == nullptr) {
    return invalid_argument("environment variable RANKINE_NETWORK is '" + std::string(network) +
                            "', for calls of programs; this works on the machine itself: unset it "
                            "(perf has --network in its place)");
  }
  return Team::create(options);
}

}  // namespace rankine::tools
