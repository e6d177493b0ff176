// Ranks on this machine itself, for what measures it or brings its own clock: not on the network
// that RANKINE_NETWORK may name.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>

#include "engine/api/team.h"

namespace rankine::tools {

inline Result<std::unique_ptr<Team>> machine_team(const TeamOptions& options) {
  if (const char* network = std::getenv("RANKINE_NETWORK")) {
    return invalid_argument("environment variable RANKINE_NETWORK is '" + std::string(network) +
                            "', for calls of programs; this works on the machine itself: unset it");
  }
  return Team::create(options);
}

}  // namespace rankine::tools
