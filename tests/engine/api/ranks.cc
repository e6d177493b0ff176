#include "tests/engine/api/ranks.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <thread>

namespace rankine {

void wait_until_waiting(const Communicator& communicator, Rank r) {
  for (;;) {
    const auto record = nlohmann::json::parse(communicator.flight_record());
    const std::string state = record["ranks"][static_cast<std::size_t>(r)]["state"];
    if (state.find("waits for rank") != std::string::npos) return;
    std::this_thread::yield();
  }
}

}  // namespace rankine
