// Ranks on this machine itself, for what measures it, or on a network that the tool was asked for:
// not on the one that RANKINE_NETWORK may name.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>

#include "engine/api/team.h"

namespace rankine::tools {

inline Result<std::unique_ptr<Team>> machine_team(const TeamOptions& options) {
  const char* network = std::getenv("RANKINE_NETWORK");
  if (network != nullptr && options.network == nullptr) {
    return invalid_argument("environment variable RANKINE_NETWORK is '" + std::string(network) +
                            "', for calls of programs; this works on the machine itself: unset it");
  }
  return Team::create(options);
}

}  // namespace rankine::tools
