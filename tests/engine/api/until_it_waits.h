// For tests that need a rank to be inside a call, and waiting, before they go on.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "engine/api/communicator.h"

namespace rankine {

// Returns when rank r waits inside a call, as its record says.
inline void until_it_waits(const Communicator& communicator, Rank r) {
  for (;;) {
    const auto record = nlohmann::json::parse(communicator.flight_record());
    const std::string state = record["ranks"][static_cast<std::size_t>(r)]["state"];
    if (state.find("waits for rank") != std::string::npos) return;
    std::this_thread::yield();
  }
}

}  // namespace rankine
