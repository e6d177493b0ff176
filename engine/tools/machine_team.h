// Ranks for what measures this machine or brings its own clock: not on the network that
// RANKINE_NETWORK may name for programs, so that nobody takes model time for time. On one that
// `options` names, where whoever measures says so.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

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

// By rank: the most that `most` and the communicator know of.
inline void add_ports_in_use(const Communicator& communicator, std::vector<PortsInUse>& most) {
  most.resize(static_cast<std::size_t>(communicator.ranks()));
  for (std::size_t r = 0; r < most.size(); ++r) {
    const PortsInUse used = communicator.ports_in_use(static_cast<Rank>(r));
    most[r].most_sent = std::max(most[r].most_sent, used.most_sent);
    most[r].most_received = std::max(most[r].most_received, used.most_received);
  }
}

// "most_sent": [2, 1], "most_received": [1, 2], by rank.
template <class Json>
void write_ports_in_use(const std::vector<PortsInUse>& most, Json& json) {
  json["most_sent"] = json["most_received"] = Json::array();
  for (const PortsInUse& one : most) {
    json["most_sent"].push_back(one.most_sent);
    json["most_received"].push_back(one.most_received);
  }
}

// "2 sending, 1 receiving", of all ranks.
inline std::string ports_in_words(const std::vector<PortsInUse>& most) {
  PortsInUse all;
  for (const PortsInUse& one : most) {
    all.most_sent = std::max(all.most_sent, one.most_sent);
    all.most_received = std::max(all.most_received, one.most_received);
  }
  return std::to_string(all.most_sent) + " sending, " + std::to_string(all.most_received) +
         " receiving";
}

}  // namespace rankine::tools
